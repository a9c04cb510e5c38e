"""Weights of a linear layer in 4 or 8 bits, a scale and a zero point for each block along the sum."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

SHARES = {4: np.arange(0.75, 1.0001, 0.05), 8: np.array([1.0])}
"""Parts of a block's range, among which the best is looked for: with 4 bits a few outliers cost all others."""


@dataclass(frozen=True)
class Blocks:
    """A weight [K, N] as ONNX Runtime's MatMulNBits holds it."""

    packed: NDArray[np.uint8]
    """[N, blocks, block · bits / 8], the first of two in the low half."""
    scales: NDArray[np.float32]
    """[N · blocks]."""
    zeros: NDArray[np.uint8]
    """[N · ceil(blocks · bits / 8)], packed likewise."""

    @property
    def nbytes(self) -> int:
        """Of all three."""
        return self.packed.nbytes + self.scales.nbytes + self.zeros.nbytes


def quantise_blocks(weight: np.ndarray, bits: int, size: int) -> Blocks:
    """Integers 0 .. 2^bits - 1 with the smallest mean squared error in each block of `size` along K.

    Args:
        weight: [K, N] float32; the last block is filled up with zeros.
        bits: 4 or 8.
        size: a power of 2 from 16.
    """
    length, outputs = weight.shape
    count = -(-length // size)
    rows = np.zeros((outputs, count * size), np.float64)
    rows[:, :length] = weight.T
    rows = rows.reshape(outputs, count, size)
    low, high = np.minimum(rows.min(axis=2), 0), np.maximum(rows.max(axis=2), 0)
    top = 2**bits - 1
    best = np.full((outputs, count), np.inf)
    scales, zeros = np.ones((outputs, count)), np.zeros((outputs, count))
    for share in SHARES[bits]:
        scale = ((high - low) * share / top).astype(np.float32).astype(np.float64)
        scale[scale == 0] = 1
        zero = np.clip(np.round(-low * share / scale), 0, top)
        integers = np.clip(np.round(rows / scale[..., None]) + zero[..., None], 0, top)
        error = np.square((integers - zero[..., None]) * scale[..., None] - rows).sum(axis=2)
        better = error < best
        best = np.where(better, error, best)
        scales, zeros = np.where(better, scale, scales), np.where(better, zero, zeros)
    integers = np.clip(np.round(rows / scales[..., None]) + zeros[..., None], 0, top).astype(np.uint8)
    return Blocks(
        _packed(integers, bits),
        scales.astype(np.float32).reshape(-1),
        _packed(zeros.astype(np.uint8), bits).reshape(-1),
    )


def _packed(integers: NDArray[np.uint8], bits: int) -> NDArray[np.uint8]:
    """Pairs of 4 bits along the last axis in a byte each."""
    if bits == 8:
        return integers
    if integers.shape[-1] % 2:
        integers = np.pad(integers, [(0, 0)] * (integers.ndim - 1) + [(0, 1)])
    return (integers[..., ::2] | integers[..., 1::2] << 4).astype(np.uint8)
