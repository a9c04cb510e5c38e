"""A fixed detector of tears, folds and seams in a frame.

Against the photo and the frame's backward map it finds, outside the openings of mouth and eyes:

- tear: neighbouring pixels that show places of the photo further apart than the map's own stretch around allows;
- fold: pixels where the map turns the photo over (negative determinant of its Jacobian);
- outlier: pixels whose colour the photo does not have anywhere within `REACH` pixels of the place they show.

A hit is a connected patch of at least `LEAST` such pixels.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from pipeline.values import U8

from .blackbox import F64, Mask, grown

I16 = NDArray[np.int16]

JUMP = 5.0
"""Pixels of the photo between neighbours of the frame: four or five times enlarged is shrunk past any head's turn."""
REACH = 3
COLOR = 14
"""Grey levels beyond the darkest and the brightest around."""
LEAST = 3
FOLD = -0.02
BORDER = 6
"""Pixels at the frame's edge where the map may point outside the photo."""


@dataclass(frozen=True)
class Hits:
    tears: Mask
    folds: Mask
    outliers: Mask

    @property
    def count(self) -> int:
        """Connected patches of all kinds."""
        return patches(self.tears) + patches(self.folds) + patches(self.outliers)

    @property
    def pixels(self) -> int:
        return int((self.tears | self.folds | self.outliers).sum())


def detect(photo: U8, frame: U8, backward: F64, allowed: Mask) -> Hits:
    """Args: `backward`: [512, 512, 2]; `allowed`: where new things may be drawn."""
    looked = ~allowed
    looked[:BORDER] = looked[-BORDER:] = False
    looked[:, :BORDER] = looked[:, -BORDER:] = False
    side = photo.shape[0] - 1
    within = ((backward > 1) & (backward < side - 1)).all(2)
    looked &= within
    down, across = (np.diff(backward, axis=axis) for axis in (0, 1))
    tears = np.zeros(looked.shape, bool)
    tears[1:] |= (np.hypot(*np.moveaxis(down, 2, 0)) > JUMP) & looked[:-1]
    tears[:, 1:] |= (np.hypot(*np.moveaxis(across, 2, 0)) > JUMP) & looked[:, :-1]
    gy, gx = np.gradient(backward, axis=0), np.gradient(backward, axis=1)
    determinant = gx[..., 0] * gy[..., 1] - gx[..., 1] * gy[..., 0]
    # Differences that reach into an opening, where the map says nothing, are not the skin's.
    of_skin = ~grown(~looked, 1)
    return Hits(tears & looked, (determinant < FOLD) & of_skin, outliers(photo, frame, backward) & looked)


def determinants(backward: F64, looked: Mask) -> tuple[float, float]:
    """Smallest and largest determinant of the forward map, where it is looked at."""
    gy, gx = np.gradient(backward, axis=0), np.gradient(backward, axis=1)
    determinant = (gx[..., 0] * gy[..., 1] - gx[..., 1] * gy[..., 0])[looked]
    low, high = np.percentile(determinant, [0.01, 99.99])
    return 1 / max(float(high), 1e-9), 1 / max(float(low), 1e-9)


@lru_cache(2)
def _around(photo: bytes, side: int) -> tuple[I16, I16]:
    """[side, side, 3] the darkest and the brightest of each channel within `REACH` pixels."""
    window = 2 * REACH + 1
    low = high = np.pad(
        np.frombuffer(photo, np.uint8).reshape(side, side, 3), ((REACH, REACH), (REACH, REACH), (0, 0)), mode="edge"
    )
    for axis in (0, 1):
        low = np.lib.stride_tricks.sliding_window_view(low, window, axis).min(-1)
        high = np.lib.stride_tricks.sliding_window_view(high, window, axis).max(-1)
    return low.astype(np.int16), high.astype(np.int16)


def outliers(photo: U8, frame: U8, backward: F64) -> Mask:
    side = photo.shape[0]
    low, high = _around(photo.tobytes(), side)
    x, y = np.clip(np.round(np.moveaxis(backward, 2, 0)), 0, side - 1).astype(int)
    shown = frame.astype(np.int16)
    beyond: Mask = np.maximum(low[y, x] - shown, shown - high[y, x]).max(2) > COLOR
    return beyond


def patches(mask: Mask, least: int = LEAST) -> int:
    """Connected patches (eight neighbours) of at least so many pixels."""
    left = set(zip(*(axis.tolist() for axis in np.nonzero(mask)), strict=True))
    found = 0
    while left:
        edge, size = [left.pop()], 0
        while edge:
            y, x = edge.pop()
            size += 1
            near = {(y + dy, x + dx) for dy in (-1, 0, 1) for dx in (-1, 0, 1)} & left
            left -= near
            edge += near
        found += size >= least
    return found
