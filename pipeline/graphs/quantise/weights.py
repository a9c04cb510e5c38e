"""Weights in 8 or fewer bits, with a scale for each output."""

from __future__ import annotations

import numpy as np

SHARES = np.arange(0.6, 1.0001, 0.025)
"""Parts of the largest magnitude, among which the best range is looked for."""


def quantise_weight(weight: np.ndarray, bits: int) -> tuple[np.ndarray, np.ndarray]:
    """Symmetric integers and a scale for each output, with the smallest mean squared error.

    Args:
        weight: [O, ...] float32.
        bits: 2 to 8; integers from -(2 ** (bits - 1) - 1) to 2 ** (bits - 1) - 1.

    Returns:
        int8 of the weight's shape, and float32 [O].
    """
    limit = 2 ** (bits - 1) - 1
    rows = weight.reshape(len(weight), -1).astype(np.float64)
    largest = np.abs(rows).max(axis=1)
    largest[largest == 0] = limit
    best = np.full(len(rows), np.inf)
    scales = largest / limit
    for share in SHARES:
        scale = (share * largest / limit).astype(np.float32).astype(np.float64)
        integers = np.clip(np.round(rows / scale[:, None]), -limit, limit)
        error = np.square(integers * scale[:, None] - rows).sum(axis=1)
        scales = np.where(error < best, scale, scales)
        best = np.minimum(error, best)
    integers = np.clip(np.round(rows / scales[:, None]), -limit, limit).astype(np.int8)
    return integers.reshape(weight.shape), scales.astype(np.float32)
