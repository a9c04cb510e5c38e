"""3-D convolutions as 2-D ones for the CPU: the two forms of `conv3d`, with fewer passes over memory."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import onnx_ir as ir

from ..model import static_shape
from .conv2d import add_bias, conv_op
from .conv3d import Conv3d
from .depth_sum import depth_sum, sources
from .editing import Editor

# Time in multiplications of the direct convolution, as in `winograd`.
MOVE = 60
"""One number copied."""
PRODUCT = 2.0
"""One multiplication of a product of matrices with few rows."""
BATCH, NARROW = 1.3, 10.0
"""One multiplication of a convolution of many slices W pixels wide is BATCH + NARROW / W."""
CHANNEL_BLOCK = 16
"""Input channels are counted in blocks: what is missing is padded, or done by a slower kernel."""


def taps_as_inputs(editor: Editor, conv: Conv3d) -> ir.Value:
    """The slices each output slice meets, gathered on the input channels."""
    met = sources(conv)
    slices, channels, *lengths = static_shape(conv.value)
    value = conv.value
    if met.max() == slices:
        value = editor.op("Concat", value, editor.const(np.zeros((1, channels, *lengths), np.float32)), axis=0)
    if met.shape[1] > 1 or not np.array_equal(met[:, 0], np.arange(slices)):
        value = editor.op("Gather", value, editor.const(np.ascontiguousarray(met).ravel()), axis=0)
    value = editor.reshape(value, [len(met), met.shape[1] * channels, *lengths])
    out, _, taps, *kernel = conv.weight.shape
    weight = conv.weight.transpose(0, 2, 1, 3, 4).reshape(out, taps * channels, *kernel)
    return conv_op(editor, value, weight, conv.bias, **_over_pictures(conv))


def taps_as_outputs(editor: Editor, conv: Conv3d) -> ir.Value:
    """Every tap's share as output channels, added by `depth_sum`."""
    out, channels, taps, *kernel = conv.weight.shape
    weight = conv.weight.transpose(2, 0, 1, 3, 4).reshape(taps * out, channels, *kernel)
    shares = conv_op(editor, conv.value, weight, **_over_pictures(conv))
    slices, _, *lengths = static_shape(shares)
    shares = editor.reshape(shares, [slices * taps, out * math.prod(lengths)])
    sums = editor.reshape(depth_sum(editor, conv, shares), [len(sources(conv)), out, *lengths])
    return add_bias(editor, sums, conv.bias)


def cost(conv: Conv3d, *, inputs: bool) -> float:
    """Of either form."""
    slices, channels, *lengths = static_shape(conv.value)
    out, _, taps = conv.weight.shape[:3]
    outputs, area = conv.shape[0] * conv.shape[2], math.prod(conv.shape[3:])
    block = CHANNEL_BLOCK / channels * math.ceil(channels / CHANNEL_BLOCK)
    each = (BATCH + NARROW / conv.shape[4]) * block * area * conv.weight.size
    if inputs:
        return each * outputs + MOVE * (slices + taps * outputs) * channels * math.prod(lengths)
    return each * slices + out * area * (MOVE * (slices * taps + outputs) + PRODUCT * outputs * slices * taps)


def _over_pictures(conv: Conv3d) -> dict[str, Any]:
    return {name: numbers for name, numbers in conv.window.flat().items() if name != "kernel_shape"}
