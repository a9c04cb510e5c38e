"""Convolutions with few output channels: a 1x1 convolution to every tap's share, then sums of shifted pictures.

y[o, i, j] = sum over taps r, s of P[o, r, s, i·stride + r·dilation - pad, ...] with P = w x, one product of matrices
[O·kH·kW, C] over all pixels, which has enough rows to be fast where a convolution with one output leaves most of a
vector idle. The shifts, zero padding included, are products with matrices of zeros and ones: along W, then along H.
"""

from __future__ import annotations

import math

import numpy as np
import onnx_ir as ir

from ..model import describe
from .conv2d import Conv2d, add_bias, convolutions
from .editing import Editor
from .passes import Outcome, Pass

BLOCK = 8
"""Output channels that the direct convolution computes at once, used or not."""

# Time in multiplications of the direct convolution, as in `winograd`.
PRODUCT = 1.25


def conv_by_shares(editor: Editor, conv: Conv2d) -> ir.Value:
    """The output of a convolution without groups."""
    batch, channels, height, width = conv.shape
    out, (taps_high, taps_wide) = conv.out_shape[1], conv.kernel
    weight = np.ascontiguousarray(conv.weight.transpose(0, 2, 3, 1)).reshape(-1, channels)
    pixels = editor.reshape(conv.value, [batch, channels, height * width])
    shares = editor.op("MatMul", editor.const(weight), pixels)
    shares = editor.reshape(shares, [batch * out * taps_high, taps_wide, height, width])
    shares = editor.transpose(shares, [0, 2, 1, 3])
    shares = editor.reshape(shares, [batch * out * taps_high * height, taps_wide * width])
    shares = editor.op("MatMul", shares, editor.const(np.ascontiguousarray(_shifts(conv, 1).T)))
    shares = editor.reshape(shares, [batch * out, taps_high * height, conv.out_shape[3]])
    value = editor.op("MatMul", editor.const(_shifts(conv, 0)), shares)
    return add_bias(editor, editor.reshape(value, conv.out_shape), conv.bias)


def _shifts(conv: Conv2d, axis: int) -> np.ndarray:
    """[outputs, taps · inputs] of one axis: one where that tap of that output meets that pixel."""
    window, outputs = conv.window, conv.out_shape[2 + axis]
    here = np.arange(outputs)[:, None] * window.strides[axis] - window.before[axis]
    met = here + np.arange(conv.kernel[axis]) * window.dilations[axis]
    matrix = met[:, :, None] == np.arange(conv.shape[2 + axis])
    return matrix.reshape(outputs, -1).astype(np.float32)


def pays(conv: Conv2d) -> bool:
    """Whether it is faster than the direct form."""
    batch, channels, height, width = conv.shape
    out, taps = conv.out_shape[1], math.prod(conv.kernel)
    high, wide = conv.out_shape[2:]
    shares = batch * out * taps * height * width * (channels + wide)
    sums = batch * out * conv.kernel[0] * height * high * wide
    direct = conv.multiplications / out * BLOCK * math.ceil(out / BLOCK)
    return PRODUCT * (shares + sums) < direct


def apply(model: ir.Model) -> Outcome:
    """Rewrite the convolutions for which it pays."""
    outcome = Outcome()
    for conv in convolutions(model, outcome.left):
        name = describe(conv.node)
        if conv.groups != 1 or conv.kernel == (1, 1):
            outcome.left[name] = "it has groups, or a kernel of one tap"
        elif not pays(conv):
            outcome.left[name] = "the direct form is faster"
        else:
            outcome.rewritten.append(name)
            editor = Editor(model, conv.node)
            editor.replace([conv_by_shares(editor, conv)])
    return outcome


PASS = Pass("few-outputs", "convolutions with few outputs as a 1x1 convolution and shifted sums", apply)
