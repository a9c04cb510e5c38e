"""Sums over the taps in depth, as a product with a matrix of zeros and ones.

Shifting whole slices by padding and slicing writes every share three times; a product of matrices reads the shares
once and writes the sums. The sum of one share and zeros is that share, so nothing is lost as long as all are finite.
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from .conv3d import Conv3d
from .editing import Editor


def sources(conv: Conv3d) -> np.ndarray:
    """The input slice that each output slice [N·D'] meets at each tap [kD]; N·D where that is padding."""
    depth, taps = conv.shape[2], conv.window.kernel[0]
    here = np.arange(depth)[:, None] * conv.window.strides[0] - conv.window.before[0]
    met = here + np.arange(taps) * conv.window.dilations[0]
    empty = (met < 0) | (met >= conv.depth)
    everywhere = met + conv.depth * np.arange(conv.batch)[:, None, None]
    return np.where(empty, conv.batch * conv.depth, everywhere).reshape(-1, taps)


def depth_sum(editor: Editor, conv: Conv3d, shares: ir.Value, *, taps_first: bool = False) -> ir.Value:
    """[..., N·D · kD, X], every slice's share for every tap (or kD · N·D), to the sums [..., N·D', X]."""
    met = sources(conv)
    slices, taps = conv.batch * conv.depth, conv.window.kernel[0]
    matrix = np.zeros((len(met), slices + 1, taps), np.float32)
    for tap in range(taps):
        matrix[np.arange(len(met)), met[:, tap], tap] = 1
    if (len(met), taps) == (slices, 1) and np.array_equal(matrix[:, :slices, 0], np.eye(slices)):
        return shares
    matrix = matrix[:, :slices].transpose(0, 2, 1) if taps_first else matrix[:, :slices]
    return editor.op("MatMul", editor.const(matrix.reshape(len(met), -1)), shares)


def plain(conv: Conv3d) -> bool:
    """No groups, and over H and W no steps and no holes; depth may have any."""
    return conv.groups == 1 and {*conv.window.strides[1:], *conv.window.dilations[1:]} == {1}
