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

TIME = 0.02
"""What moving through the whole gap between two key frames counts as, in crop units of displacement."""


def displacement_field(at: F32, toward: F32, size: int) -> F32:
    """Smooth field that carries the keypoints `at` to `toward`, by normalised Gaussian weights.

    Args:
        at, toward: [K, 2] keypoints in crop units. size: side of the picture in pixels.

    Returns:
        [size, size, 2] float32: x, y displacement in crop units at every pixel.
    """
    low, high = at.min(0), at.max(0)
    width = SPREAD * float(np.sqrt(np.prod(np.maximum(high - low, 1e-3)) / len(at)))
    axis = ((np.arange(GRID, dtype=np.float32) + 0.5) / GRID * 2 - 1).astype(np.float32)
    # exp(-(dx^2 + dy^2)) = exp(-dx^2) exp(-dy^2): the sum over keypoints is a product of two matrices.
    across = np.exp(-(((axis[:, None] - at[None, :, 0]) / width) ** 2))
    down = np.exp(-(((axis[:, None] - at[None, :, 1]) / width) ** 2))
    moved = (toward - at).astype(np.float32)
    weight = down @ across.T + np.float32(STILL)
    nodes = np.stack([(down * moved[:, i]) @ across.T / weight for i in range(2)], -1)
    return _enlarged(nodes.astype(np.float32), size)


def _enlarged(nodes: F32, size: int) -> F32:
    """[GRID, GRID, C] at cell centres -> [size, size, C], linear, edges held."""
    position = np.clip((np.arange(size, dtype=np.float32) + 0.5) * GRID / size - 0.5, 0, GRID - 1)
    low = np.minimum(position.astype(np.int64), GRID - 2)
    part = (position - low).astype(np.float32)
    rows = nodes[low] * (1 - part[:, None, None]) + nodes[low + 1] * part[:, None, None]
    return rows[:, low] * (1 - part[:, None]) + rows[:, low + 1] * part[:, None]


def warped(image: U8, field: F32) -> F32:
    """Picture sampled at every pixel plus the field (crop units), bilinear, edges held: [S, S, 3] float32."""
    size = image.shape[0]
    base = np.arange(size, dtype=np.float32)
    x = np.clip(base[None, :] + field[..., 0] * (size / 2), 0, size - 1)
    y = np.clip(base[:, None] + field[..., 1] * (size / 2), 0, size - 1)
    left, top = np.minimum(x.astype(np.int64), size - 2), np.minimum(y.astype(np.int64), size - 2)
    fx, fy = (x - left)[..., None].astype(np.float32), (y - top)[..., None].astype(np.float32)
    flat, first = image.reshape(-1, 3), top * size + left
    upper = flat[first] * (1 - fx) + flat[first + 1] * fx
    lower = flat[first + size] * (1 - fx) + flat[first + size + 1] * fx
    return upper * (1 - fy) + lower * fy


def between(before: KeyFrame, after: KeyFrame, frame: int, keypoints: F32) -> U8:
    """The frame between two key frames.

    Args:
        frame: its number. keypoints: [K, 3], its own driving keypoints.

    Returns:
        [S, S, 3] uint8. At a key frame's own keypoints and number this is the key frame.
    """
    size = before.image.shape[0]
    part = (frame - before.index) / (after.index - before.index)
    fields = [displacement_field(keypoints[:, :2], key.keypoints[:, :2], size) for key in (before, after)]
    costs = [
        (field**2).sum(-1, keepdims=True) + np.float32((TIME * time) ** 2)
        for field, time in zip(fields, (part, 1 - part), strict=True)
    ]
    pictures = [warped(key.image, field) for key, field in zip((before, after), fields, strict=True)]
    mixed = (pictures[0] * costs[1] + pictures[1] * costs[0]) / (costs[0] + costs[1])
    return (mixed + 0.5).astype(np.uint8)


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
