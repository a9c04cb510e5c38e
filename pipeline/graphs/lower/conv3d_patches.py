"""3-D convolutions of small slices as one product of matrices with gathered patches.

On pictures of a few pixels a convolution spends its time on borders and on waiting for weights. Gathering what
every output meets, [C · taps, outputs], costs little there, and the weights [O, C · taps] are read once.
"""

from __future__ import annotations

import math

import numpy as np
import onnx_ir as ir

from ..model import static_shape
from .conv2d import add_bias
from .conv3d import Conv3d
from .depth_sum import sources
from .editing import Editor

# Time in multiplications of the direct convolution, as in `winograd`.
PRODUCT = 1.25
"""One multiplication of the product of matrices."""
MOVE = 60
"""One number gathered."""


def conv3d_by_patches(editor: Editor, conv: Conv3d) -> ir.Value:
    """Slices [N·D', O, H', W'] of a convolution without groups."""
    slices, channels, *lengths = static_shape(conv.value)
    pixels, (out, _, *kernel) = math.prod(lengths), conv.weight.shape
    met = sources(conv)
    rows, columns = (_met(conv, axis) for axis in (1, 2))
    # N·D', H', W', kD, kH, kW
    slice_at = met[:, None, None, :, None, None]
    row_at, column_at = rows[None, :, None, None, :, None], columns[None, None, :, None, None, :]
    outside = (slice_at == slices) | (row_at < 0) | (column_at < 0)
    place = np.where(outside, slices * pixels, (slice_at * lengths[0] + row_at) * lengths[1] + column_at)
    value = editor.transpose(editor.reshape(conv.value, [slices, channels, pixels]), [0, 2, 1])
    value = editor.reshape(value, [slices * pixels, channels])
    if outside.any():
        value = editor.op("Concat", value, editor.const(np.zeros((1, channels), np.float32)), axis=0)
    value = editor.op("Gather", value, editor.const(place.astype(np.int64).ravel()), axis=0)
    value = editor.reshape(value, [place.size // math.prod(kernel), math.prod(kernel) * channels])
    weight = np.ascontiguousarray(conv.weight.transpose(2, 3, 4, 1, 0)).reshape(-1, out)
    value = editor.op("MatMul", value, editor.const(weight))
    value = editor.reshape(value, [len(met), math.prod(conv.shape[3:]), out])
    value = editor.reshape(editor.transpose(value, [0, 2, 1]), [len(met), out, *conv.shape[3:]])
    return add_bias(editor, value, conv.bias)


def _met(conv: Conv3d, axis: int) -> np.ndarray:
    """The pixel that each output along H or W meets at each tap, [outputs, taps]; -1 where that is padding."""
    window, length = conv.window, static_shape(conv.value)[1 + axis]
    here = np.arange(conv.shape[2 + axis])[:, None] * window.strides[axis] - window.before[axis]
    met = here + np.arange(window.kernel[axis]) * window.dilations[axis]
    return np.where((met >= 0) & (met < length), met, -1)


def cost(conv: Conv3d) -> float:
    """In multiplications of the direct form."""
    outputs = conv.shape[0] * conv.shape[2] * math.prod(conv.shape[3:])
    return outputs * (PRODUCT * conv.weight.size + MOVE * (conv.weight[0].size + conv.weight.shape[0]))
