"""Stage 6: which frames the generator renders."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from ..packs.specs import KeyFrameSpec
from ..values import F32


def plan_key_frames(
    mouth: Callable[[int], F32], count: int, fps: Fraction, keyframe_fps: float, spec: KeyFrameSpec
) -> NDArray[np.int64]:
    """Frame numbers of the key frames: an even grid, the first and the last frame, and extras where the
    mouth moves fastest.

    Args:
        mouth: frame number -> mouth keypoints [L, 3] of that frame.
        count: film frames. fps: the film's rate. keyframe_fps: rate of the even grid.

    Returns:
        [n] int64, rising, from 0 to count - 1.
    """
    if keyframe_fps >= fps:
        return np.arange(count, dtype=np.int64)
    step = float(fps) / keyframe_fps
    grid = np.round(np.arange(0, count, step)).astype(np.int64)
    chosen = set(grid[grid < count].tolist()) | {0, count - 1}
    return np.array(sorted(chosen | _extras(_speeds(mouth, count), chosen, float(fps), spec)), np.int64)


def _speeds(mouth: Callable[[int], F32], count: int) -> NDArray[np.float64]:
    """Mean distance that the mouth's points move from the frame before: [count], first 0."""
    speeds = np.zeros(count)
    previous = mouth(0)
    for frame in range(1, count):
        current = mouth(frame)
        speeds[frame] = np.linalg.norm((current - previous)[:, :2], axis=1).mean()
        previous = current
    return speeds


def _extras(speeds: NDArray[np.float64], chosen: set[int], fps: float, spec: KeyFrameSpec) -> set[int]:
    """The fastest frames first, each at least the gap away from all key frames chosen so far."""
    gap = max(1, round(spec.extra_gap * fps))
    free = np.ones(len(speeds), bool)
    for frame in chosen:
        free[max(0, frame - gap + 1) : frame + gap] = False
    candidates = np.flatnonzero(speeds > np.percentile(speeds, spec.extra_percentile))
    extras = set()
    for frame in sorted(candidates.tolist(), key=lambda f: (-speeds[f], f)):
        if free[frame]:
            extras.add(frame)
            free[max(0, frame - gap + 1) : frame + gap] = False
    return extras
