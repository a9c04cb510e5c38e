"""Where every pixel of a frame comes from, found without looking into the graphs.

The features are made again from a picture whose red and green are coordinates; the generator, given those, shows at
each pixel the place of the photo that it samples. Outside the mouth's and the eyes' openings, where new things are
drawn, this is the frame's backward map.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from pipeline.packs.embedded.authoring.anatomy import EYES, LOWER_EDGE, UPPER_EDGE
from pipeline.values import F32, Appearance

from ..acting import SIZE, Actor, in_pixels

F64 = NDArray[np.float64]
Mask = NDArray[np.bool_]
LOW, HIGH = 0.15, 0.85
"""The part of the range that coordinates take: cubic interpolation may overshoot."""


def coordinate_picture() -> F32:
    """[1, 3, 512, 512]: red rises to the right, green to the bottom."""
    ramp = np.linspace(LOW, HIGH, SIZE, dtype=np.float32)
    red, green = np.meshgrid(ramp, ramp)
    return np.stack([red, green, np.full_like(red, 0.5)])[None]


@dataclass(frozen=True)
class Coded:
    """An actor whose features hold coordinates."""

    actor: Actor
    appearance: Appearance

    @classmethod
    def of(cls, actor: Actor) -> Coded:
        model, source = actor.studio.models.get("appearance"), actor.appearance.source
        features = model.run({"image": coordinate_picture(), "kp_source": source.keypoints[None]})
        return cls(actor, Appearance(features, source))

    def backward(self, keypoints: F32) -> F64:
        """[512, 512, 2] x, y of the photo (pixel indices) that each pixel of the frame shows."""
        (frame,) = self.actor.frames(keypoints[None], self.appearance)
        return (frame[..., :2].astype(np.float64) - LOW) / (HIGH - LOW) * (SIZE - 1)


def inside(points: F64) -> Mask:
    """[512, 512] pixels whose centres lie in a polygon [n, 2]."""
    y, x = np.mgrid[0:SIZE, 0:SIZE] + 0.5
    found = np.zeros((SIZE, SIZE), bool)
    for (x0, y0), (x1, y1) in zip(points, np.roll(points, -1, axis=0), strict=True):
        if y0 != y1:
            found ^= ((y0 > y) != (y1 > y)) & (x < x0 + (y - y0) * (x1 - x0) / (y1 - y0))
    return found


def grown(mask: Mask, pixels: int) -> Mask:
    """The mask and all within so many pixels of it (a square's reach)."""
    for axis in (0, 1):
        padded = np.pad(mask, [(pixels, pixels) if a == axis else (0, 0) for a in (0, 1)])
        mask = np.lib.stride_tricks.sliding_window_view(padded, 2 * pixels + 1, axis).any(-1)
    return mask


def openings(keypoints: F32, lips: int = 3, lids: int = 4) -> Mask:
    """[512, 512] the mouth's and the eyes' openings and so many pixels around: there new things are drawn."""
    points = in_pixels(keypoints)[:, :2]
    eyes = [inside(points[[*eye.upper_edge, *eye.lower_edge[::-1]]]) | _near(points[eye.upper_edge]) for eye in EYES]
    mouth = inside(points[[*UPPER_EDGE, *LOWER_EDGE[::-1]]]) | _near(points[UPPER_EDGE])
    return grown(mouth, lips) | grown(eyes[0] | eyes[1], lids)


def _near(line: F64) -> Mask:
    """The pixels that a polyline passes."""
    found = np.zeros((SIZE, SIZE), bool)
    for a, b in pairwise(line):
        steps = np.linspace(a, b, 2 + int(2 * np.abs(b - a).max()))
        x, y = np.clip(steps.astype(int), 0, SIZE - 1).T
        found[y, x] = True
    return found
