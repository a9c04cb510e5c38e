"""Stage 6: which frames the generator renders."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from ..packs.specs import KeyFrameSpec
from ..values import F32


def plan_key_frames(
    mouth: Callable[[int], F32], count: int, fps: Fraction, keyframe_fps: float, spec: KeyFrameSpec
) -> NDArray[np.int64]:
    """Frame numbers of the key frames: an even grid, the first and the last frame, extras where the mouth
    moves fastest, and those whose mouth no key frame shows: an open mouth made of two closed ones has no inside.

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
    mouths = np.stack([mouth(frame)[:, :2] for frame in range(count)])
    chosen |= _extras(mouths, chosen, float(fps), spec)
    return np.array(sorted(chosen | _missed(mouths, sorted(chosen), spec.greatest_miss)), np.int64)


def _distance(mouths: F32, other: F32) -> F32:
    """Mean distance of mouths' points: [n, L, 2] and [n or 1, L, 2] -> [n]."""
    return np.asarray(np.linalg.norm(mouths - other, axis=-1).mean(-1), np.float32)


def _extras(mouths: F32, chosen: set[int], fps: float, spec: KeyFrameSpec) -> set[int]:
    """The fastest frames first, each at least the gap away from all key frames chosen so far."""
    speeds = np.concatenate([np.zeros(1, np.float32), _distance(mouths[1:], mouths[:-1])])
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


def _missed(mouths: F32, chosen: list[int], limit: float) -> set[int]:
    """Frames whose mouth is farther than the limit from both key frames around it, the farthest first."""
    found = set()
    spans = list(pairwise(chosen))
    while spans:
        before, after = spans.pop()
        between = mouths[before + 1 : after]
        if not len(between):
            continue
        miss = np.minimum(_distance(between, mouths[before]), _distance(between, mouths[after]))
        farthest = int(miss.argmax())
        if miss[farthest] > limit:
            frame = before + 1 + farthest
            found.add(frame)
            spans += [(before, frame), (frame, after)]
    return found
