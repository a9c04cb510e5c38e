"""3-D convolutions by minimal filtering in H and W, with the taps in depth summed between the two transforms.

Each slice is transformed once, whatever the number of taps in depth. The taps then become either input channels
(the transformed slices stacked, one product of matrices sums them) or output channels (one product gives every
tap's share, `depth_sum` adds them after the second transform, where there are fewer numbers).
"""

from __future__ import annotations

import math

import numpy as np
import onnx_ir as ir

from ..model import static_shape
from .conv2d import add_bias
from .conv3d import Conv3d
from .depth_sum import depth_sum, plain, sources
from .editing import Editor
from .winograd import (
    FROM_PRODUCTS,
    KERNELS,
    MIN_TILES,
    PRODUCT,
    TO_PRODUCTS,
    Tiles,
    crop,
    from_results,
    make_tiles,
    to_products,
    to_results,
    weight_products,
)

MAX_WEIGHTS = 128 * 2**20
"""Bytes of transformed weights above which the form is not used: they would be read from memory at every run."""
MOVE = 60
"""One number copied, in multiplications of the direct form."""


def conv3d_tiles(conv: Conv3d) -> Tiles:
    """The tiles that cover the output's slices."""
    return make_tiles(conv.weight.shape[3:], conv.window.before[1:], conv.shape[3:])


def conv3d_by_winograd(editor: Editor, conv: Conv3d, *, taps_as_inputs: bool) -> ir.Value:
    """Slices [N·D', O, H', W'] of a convolution that `plain` allows, with 2 or 3 taps in H and in W."""
    cut = conv3d_tiles(conv)
    slices, area = len(sources(conv)), math.prod(cut.count)
    out, channels, taps = conv.weight.shape[:3]
    weight = np.stack([weight_products(conv.weight[:, :, tap], cut) for tap in range(taps)], 3)  # products, O, C, kD
    if taps_as_inputs:
        products = editor.op("MatMul", editor.const(weight.reshape(cut.products, out, channels * taps)),
                             _stacked(editor, conv, cut))  # fmt: skip
        results = to_results(editor, products, cut)
    else:
        shares = np.ascontiguousarray(weight.transpose(0, 1, 3, 2)).reshape(cut.products, out * taps, channels)
        products = editor.op("MatMul", editor.const(shares), to_products(editor, conv.value, cut))
        results = to_results(editor, products, cut)
        results = editor.reshape(results, [cut.results * out, taps * static_shape(conv.value)[0], area])
        results = depth_sum(editor, conv, results, taps_first=True)
    value = crop(editor, from_results(editor, results, cut, slices, out), conv.shape[3:])
    return add_bias(editor, value, conv.bias)


def _stacked(editor: Editor, conv: Conv3d, cut: Tiles) -> ir.Value:
    """The transformed slices that each output slice meets: [products, C · kD, N·D' · tiles]."""
    met = sources(conv)
    slices, channels, *lengths = static_shape(conv.value)
    value = conv.value
    if met.max() == slices:
        value = editor.op("Concat", value, editor.const(np.zeros((1, channels, *lengths), np.float32)), axis=0)
    found = to_products(editor, value, cut)
    area = math.prod(cut.count)
    found = editor.reshape(found, [cut.products * channels, static_shape(value)[0], area])
    found = editor.op("Gather", found, editor.const(np.ascontiguousarray(met.T).ravel()), axis=1)
    return editor.reshape(found, [cut.products, channels * met.shape[1], len(met) * area])


def fits(conv: Conv3d) -> bool:
    """Whether the form applies and has tiles enough to be considered."""
    if not plain(conv) or not set(conv.weight.shape[3:]) <= set(KERNELS):
        return False
    cut = conv3d_tiles(conv)
    enough = conv.shape[0] * conv.shape[2] * math.prod(cut.count) >= MIN_TILES
    return enough and cut.products * math.prod(conv.weight.shape[:3]) * 4 <= MAX_WEIGHTS


def cost(conv: Conv3d, *, taps_as_inputs: bool) -> float:
    """In multiplications of the direct form."""
    cut = conv3d_tiles(conv)
    area, (slices, channels) = math.prod(cut.count), static_shape(conv.value)[:2]
    out, _, taps = conv.weight.shape[:3]
    outputs = conv.shape[0] * conv.shape[2]
    products = cut.products * area * PRODUCT * out * channels * taps
    found = cut.products * area * slices * channels * TO_PRODUCTS
    if taps_as_inputs:
        stacked = cut.products * area * outputs * channels * taps * MOVE
        return products * outputs + found + stacked + cut.results * area * outputs * out * FROM_PRODUCTS
    shares = cut.results * area * out * taps * slices * FROM_PRODUCTS / 2
    sums = cut.results * area * out * outputs * (FROM_PRODUCTS / 2 + PRODUCT * taps * slices)
    return products * slices + found + shares + sums
