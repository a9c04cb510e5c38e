"""The last step of stage 3: a calmer head (LivePortrait's smoothing of the driving motion)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..values import F32, Motion


def smoothed(motion: Motion, share: float) -> Motion:
    """An exponential moving average over scale, translation and angles; the expression is left as it is, so that
    lips and lids keep their time.

    s_j = share * s_(j-1) + (1 - share) * x_j from s_0 = x_0: a row depends on the rows before it alone, so the
    beginning does not depend on what follows. The average lags by share / (1 - share) frames.

    Args:
        motion: the whole of it, in order; it knows no windows.
        share: what of a frame comes from the frame before, 0 (nothing is changed) to below 1.
    """
    if share == 0:
        return motion
    rows = np.concatenate([motion.scale[:, None], motion.translation, motion.angles], axis=1)
    rows = _average(rows, np.float32(share))
    return replace(motion, scale=rows[:, 0], translation=rows[:, 1:4], angles=rows[:, 4:])


def _average(rows: F32, share: np.float32) -> F32:
    averaged = np.empty_like(rows)
    state = rows[0]
    for j, row in enumerate(rows):
        state = state + (np.float32(1) - share) * (row - state)
        averaged[j] = state
    return averaged
