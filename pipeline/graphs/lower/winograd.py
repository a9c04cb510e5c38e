"""Small convolutions by minimal filtering (Winograd), written as ordinary operators.

A picture is cut into tiles that overlap by the kernel less one; for each tile y = A^T [U * (B^T d B)] A with the
matrices of `toom_cook` (Lavin and Gray, 2016, arXiv 1509.09308). With four outputs an axis, a 3x3 kernel takes
36 products where the direct form takes 144. The operators, and why these:

- B^T d B for all channels is one convolution of [N·C, 1, H, W] with a filter for each of the 36 products, stepping
  by four: zero padding and sizes that are no multiple of four cost nothing, and convolutions that read the same
  value share it. A transposition of whole tiles then brings the products to the front.
- The sum over channels is a batch of 36 products of matrices.
- A^T m A is one [16, 36] product; `interleave` puts the 16 results of a tile in their places.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from ..model import describe, static_shape
from .conv2d import Conv2d, add_bias, conv_op, convolutions
from .editing import Editor
from .interleave import interleave
from .passes import Outcome, Pass
from .toom_cook import Filtering, filtering

OUTPUTS = (4, 4)
"""Results of a tile along H and W: six would save a third more products and lose another digit."""

KERNELS = (2, 3)
"""Lengths of a kernel along each axis."""

# Time on ONNX Runtime's CPU provider, in multiplications of its direct convolution (83 G/s at two cores; the
# ratios hold from AVX2 to AVX-512, as both sides are bound alike by arithmetic or by memory).
PRODUCT = 1.25
"""One multiplication of the batched products."""
TO_PRODUCTS = 200
"""One number of the transformed input: written by the convolution, twice put in order."""
FROM_PRODUCTS = 340
"""One number of the output: the [16, 36] product, two transpositions, the bias."""
MIN_TILES = 64
"""Fewer tiles than this leave the products of matrices waiting for their weights."""


@dataclass(frozen=True)
class Tiles:
    """How a picture is cut: the filtering along H and W, results of a tile, tiles, zeros in front."""

    height: Filtering
    width: Filtering
    outputs: tuple[int, int]
    count: tuple[int, int]
    before: tuple[int, int]

    @property
    def products(self) -> int:
        """Products a tile and channel."""
        return len(self.height.input) * len(self.width.input)

    @property
    def results(self) -> int:
        """Results a tile and channel."""
        return math.prod(self.outputs)

    @property
    def area(self) -> tuple[int, int]:
        """H and W of what all tiles cover."""
        return self.count[0] * self.outputs[0], self.count[1] * self.outputs[1]


def make_tiles(kernel: Sequence[int], before: Sequence[int], outputs: Sequence[int]) -> Tiles:
    """The tiles that cover outputs [H', W'] for a kernel with zeros in front; all are pairs."""
    return Tiles(
        filtering(OUTPUTS[0], kernel[0]),
        filtering(OUTPUTS[1], kernel[1]),
        OUTPUTS,
        (math.ceil(outputs[0] / OUTPUTS[0]), math.ceil(outputs[1] / OUTPUTS[1])),
        (before[0], before[1]),
    )


def tiles(conv: Conv2d) -> Tiles:
    """The tiles that cover a convolution's output."""
    return make_tiles(conv.kernel, conv.window.before, conv.out_shape[2:])


def to_products(editor: Editor, value: ir.Value, cut: Tiles) -> ir.Value:
    """B^T d B of every tile of [N, C, H, W]: [products, C, N·tiles]."""
    batch, channels, *lengths = static_shape(value)
    filters = np.einsum("ai,bj->abij", cut.height.input, cut.width.input)
    filters = filters.reshape(cut.products, 1, *filters.shape[2:]).astype(np.float32)
    after = [
        covered + size - outputs - length - before
        for covered, size, outputs, length, before in zip(
            cut.area, filters.shape[2:], cut.outputs, lengths, cut.before, strict=True
        )
    ]
    planes = editor.reshape(value, [batch * channels, 1, *lengths])
    found = conv_op(editor, planes, filters, strides=list(cut.outputs), pads=[*cut.before, *after])
    area = math.prod(cut.count)
    if batch == 1:
        return editor.transpose(editor.reshape(found, [channels, cut.products, area]), [1, 0, 2])
    found = editor.transpose(editor.reshape(found, [batch, channels, cut.products, area]), [2, 1, 0, 3])
    return editor.reshape(found, [cut.products, channels, batch * area])


def weight_products(weight: np.ndarray, cut: Tiles) -> np.ndarray:
    """G w G^T of weights [O, C, kH, kW]: [products, O, C], float32 of a float64 result."""
    both = np.kron(cut.height.weight, cut.width.weight)
    found = both @ weight.reshape(-1, both.shape[1]).T.astype(np.float64)
    return found.reshape(cut.products, *weight.shape[:2]).astype(np.float32)


def to_results(editor: Editor, products: ir.Value, cut: Tiles) -> ir.Value:
    """A^T m A of [products, ...]: [results, X], the results of every tile, for each place in it."""
    matrix = np.einsum("ia,jb->ijab", cut.height.output, cut.width.output).reshape(cut.results, cut.products)
    flat = editor.reshape(products, [cut.products, math.prod(static_shape(products)[1:])])
    return editor.op("MatMul", editor.const(matrix.astype(np.float32)), flat)


def from_results(editor: Editor, results: ir.Value, cut: Tiles, batch: int, channels: int) -> ir.Value:
    """The results of tiles [results, O·N·tiles] in their places: pictures [N, O, H', W'], all that tiles cover."""
    parts = editor.reshape(results, [cut.results, channels * batch, *cut.count])
    value = interleave(editor, parts, cut.outputs)
    if batch > 1:
        value = editor.transpose(editor.reshape(value, [channels, batch, math.prod(cut.area)]), [1, 0, 2])
    return editor.reshape(value, [batch, channels, *cut.area])


def crop(editor: Editor, value: ir.Value, lengths: tuple[int, ...]) -> ir.Value:
    """The first H and W of pictures."""
    for axis, length in enumerate(lengths, start=2):
        if static_shape(value)[axis] != length:
            value = editor.slice(value, axis, 0, length)
    return value


def conv_by_winograd(editor: Editor, conv: Conv2d, transformed: ir.Value) -> ir.Value:
    """A convolution's output from the transformed input that `to_products` gave."""
    cut = tiles(conv)
    products = editor.op("MatMul", editor.const(weight_products(conv.weight, cut)), transformed)
    results = to_results(editor, products, cut)
    value = from_results(editor, results, cut, conv.shape[0], conv.out_shape[1])
    return add_bias(editor, crop(editor, value, conv.out_shape[2:]), conv.bias)


def fits(conv: Conv2d) -> bool:
    """Whether the form applies at all."""
    return conv.plain and set(conv.kernel) <= set(KERNELS)


def pays(convs: list[Conv2d]) -> bool:
    """Whether it is faster than the direct form for convolutions that share their input."""
    cut = tiles(convs[0])
    batch, channels = convs[0].shape[:2]
    number = batch * math.prod(cut.count)
    if number < MIN_TILES:
        return False
    outputs = sum(conv.out_shape[1] for conv in convs)
    cost = cut.products * number * channels * (TO_PRODUCTS + PRODUCT * outputs) + (
        cut.results * number * outputs * FROM_PRODUCTS
    )
    return cost < sum(conv.multiplications for conv in convs)


def apply(model: ir.Model) -> Outcome:
    """Rewrite the convolutions for which it pays; those of one input and window share the transformed input."""
    outcome = Outcome()
    shared: dict[tuple[object, ...], list[Conv2d]] = {}
    for conv in convolutions(model, outcome.left):
        if fits(conv):
            key = (conv.value, conv.kernel, conv.window.before, conv.window.after)
            shared.setdefault(key, []).append(conv)
        else:
            outcome.left[describe(conv.node)] = "not a plain convolution with a kernel of 2 or 3"
    for convs in shared.values():
        if not pays(convs):
            outcome.left |= {describe(conv.node): "the direct form is faster" for conv in convs}
            continue
        transformed = to_products(Editor(model, convs[0].node), convs[0].value, tiles(convs[0]))
        for conv in convs:
            editor = Editor(model, conv.node)
            outcome.rewritten.append(describe(conv.node))
            editor.replace([conv_by_winograd(editor, conv, transformed)])
    return outcome


PASS = Pass("winograd", "convolutions of 2 and 3 taps an axis by minimal filtering", apply)
