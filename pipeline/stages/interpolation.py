"""Stage 9: frames between key frames.

A frame between two key frames shows both, each moved to the frame's own keypoints by a smooth field,
and of the two the one that had to move less. Whole faces are never cross-faded as they stand: that
shows two mouths.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext

import numpy as np

from ..values import F32, U8, KeyFrame

GRID = 64
"""Nodes a side on which the field is computed; between them it is linear."""

SPREAD = 0.6
"""Width of a keypoint's influence, times the mean distance of neighbours among K points in the face."""

STILL = 0.05
"""Weight of "nothing moves here": away from every keypoint the picture stands still."""

ROWS = 32
"""Rows of pixels that are made together: few enough to stay in a core's cache, a fifth of the time of all at once."""

BAND = 8
"""Rows of nodes that are summed in one product: BLAS makes products this small in the thread that asks for them. With
threads that wait for each other the field takes 35 times as long on a machine with other work."""

TIME = 0.02
"""What moving through the whole gap between two key frames counts as, in crop units of displacement."""


def displacement_field(at: F32, toward: F32) -> F32:
    """Smooth field that carries the keypoints `at` to `toward`, by normalised Gaussian weights.

    Args:
        at, toward: [K, 2] keypoints in crop units.

    Returns:
        [2, GRID, GRID] float32: x and y displacement in crop units at the nodes, which are the centres of
        GRID x GRID cells.
    """
    low, high = at.min(0), at.max(0)
    width = SPREAD * float(np.sqrt(np.prod(np.maximum(high - low, 1e-3)) / len(at)))
    axis = ((np.arange(GRID, dtype=np.float32) + 0.5) / GRID * 2 - 1).astype(np.float32)
    # exp(-(dx^2 + dy^2)) = exp(-dx^2) exp(-dy^2): the sum over keypoints is a product of two matrices.
    across = np.exp(-(((axis[:, None] - at[None, :, 0]) / width) ** 2))
    down = np.exp(-(((axis[:, None] - at[None, :, 1]) / width) ** 2))
    moved = (toward - at).astype(np.float32)
    shares = np.stack([down, down * moved[:, 0], down * moved[:, 1]])
    weight, x, y = (shares.reshape(-1, BAND, len(at)) @ across.T).reshape(3, GRID, GRID)
    return (np.stack([x, y]) / (weight + np.float32(STILL))).astype(np.float32)


class Enlargement:
    """Planes of nodes, as of `displacement_field`, at a picture's pixels: linear, edges held.

    Args:
        size: side of the picture in pixels.
    """

    def __init__(self, size: int) -> None:
        position = np.clip((np.arange(size, dtype=np.float32) + 0.5) * GRID / size - 0.5, 0, GRID - 1)
        self._low = np.minimum(position.astype(np.intp), GRID - 2)
        self._part = (position - self._low).astype(np.float32)

    def rows(self, planes: F32, rows: slice) -> F32:
        """[C, GRID, GRID] -> [C, R, size] float32: these rows of the picture."""
        low, part = self._low[rows], self._part[rows, None]
        some = planes[:, low] * (1 - part) + planes[:, low + 1] * part
        left = some.take(self._low, 2)
        return left + (some.take(self._low + 1, 2) - left) * self._part


def sampled(planes: F32, x: F32, y: F32, out: F32) -> None:
    """Picture at places between its pixels: bilinear, edges held.

    Args:
        planes: [C, S, S] float32, contiguous. x, y: [R, W] pixels, the first one's centre is 0.
        out: [C, R, W] float32, is written.
    """
    size = planes.shape[-1]
    x, y = np.clip(x, 0, size - 1), np.clip(y, 0, size - 1)
    left, top = np.minimum(x.astype(np.intp), size - 2), np.minimum(y.astype(np.intp), size - 2)
    fx, fy = (x - left).astype(np.float32), (y - top).astype(np.float32)
    first = top * size + left
    right, below, across = first + 1, first + size, first + (size + 1)
    for plane, made in zip(planes.reshape(len(planes), -1), out, strict=True):
        # In place, and with the places known to be inside: a third of the time.
        plane.take(first, out=made, mode="clip")
        made += (plane.take(right, mode="clip") - made) * fx
        under = plane.take(below, mode="clip")
        under += (plane.take(across, mode="clip") - under) * fx
        under -= made
        under *= fy
        made += under


def between(before: KeyFrame, after: KeyFrame, frame: int, keypoints: F32) -> U8:
    """The frame between two key frames.

    Args:
        frame: its number. keypoints: [K, 3], its own driving keypoints.

    Returns:
        [S, S, 3] uint8. At a key frame's own keypoints and number this is the key frame.
    """
    size = before.image.shape[0]
    part = (frame - before.index) / (after.index - before.index)
    fields = [displacement_field(keypoints[:, :2], key.keypoints[:, :2]) for key in (before, after)]
    costs = [
        (field**2).sum(0) + np.float32((TIME * time) ** 2) for field, time in zip(fields, (part, 1 - part), strict=True)
    ]
    nodes = np.stack([*(fields[0] * (size / 2)), *(fields[1] * (size / 2)), costs[1] / (costs[0] + costs[1])])
    planes = [np.ascontiguousarray(key.image.transpose(2, 0, 1), np.float32) for key in (before, after)]
    enlargement, base = Enlargement(size), np.arange(size, dtype=np.float32)
    image = np.empty((size, size, 3), np.uint8)
    pictures = np.empty((2, 3, ROWS, size), np.float32)
    for start in range(0, size, ROWS):
        rows = slice(start, min(start + ROWS, size))
        *moves, share = enlargement.rows(nodes.astype(np.float32), rows)
        first, second = pictures[:, :, : rows.stop - start]
        sampled(planes[0], base + moves[0], base[rows, None] + moves[1], first)
        sampled(planes[1], base + moves[2], base[rows, None] + moves[3], second)
        first -= second
        first *= share
        first += second
        first += np.float32(0.5)
        for channel, plane in enumerate(first):
            image[rows, :, channel] = plane
    return image


def fill_between(
    key_frames: Iterable[KeyFrame],
    keypoints: Callable[[int], F32],
    timing: Callable[[], AbstractContextManager[None]] = nullcontext,
) -> Iterator[tuple[int, U8]]:
    """All frames from the first key frame to the last, in order: frame number and [S, S, 3] uint8.

    Holds two key frames at a time.

    Args:
        keypoints: of any frame in between, [K, 3].
        timing: entered around the making of each frame in between.
    """
    before: KeyFrame | None = None
    for key in key_frames:
        if before is not None:
            for frame in range(before.index + 1, key.index):
                points = keypoints(frame)
                with timing():
                    image = between(before, key, frame, points)
                yield frame, image
        yield key.index, key.image
        before = key
