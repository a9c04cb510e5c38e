"""Wide kernels with few outputs, for a GPU: a convolution to the taps' shares, and one that adds them up.

A tensor core computes tiles of outputs, so that a 7x7x7 convolution to 22 channels wastes a third of it and one to a
single channel nearly all. With the taps along an axis as output channels, share[t·O + o] = w[o, :, t] * x, the tiles
are full; y[o] = sum over t of share[t·O + o] moved by t is a second convolution, of zeros and ones, hundreds of times
smaller. Zero padding along that axis becomes zero shares. Exact up to rounding.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from ..model import attribute, constant, describe, static_shape
from .editing import Editor
from .passes import CannotLowerError, Outcome, Pass
from .volumes import Window, window

FEW = 32
"""Outputs up to which tiles are badly filled."""
WIDE = 5
"""Length from which a kernel's axis may be taken apart: below it the sum costs more than is gained."""
MOST = 256
"""Shares an output element at most."""
ALIGNED = 8
"""Channels of half precision that a tensor core reads at once."""


def apply(model: ir.Model) -> Outcome:
    """Rewrite convolutions with few outputs and wide kernels."""
    outcome = Outcome()
    for node in list(model.graph):
        if node.op_type != "Conv" or node.domain:
            continue
        try:
            _rewrite(model, node)
        except CannotLowerError as reason:
            outcome.left[describe(node)] = str(reason)
        else:
            outcome.rewritten.append(describe(node))
    return outcome


def _rewrite(model: ir.Model, node: ir.Node) -> None:
    weight = constant(node.inputs[1])
    if weight is None or attribute(node, "group", 1) != 1:
        raise CannotLowerError("its weights are not constant, or its channels are in groups")
    assert node.inputs[0] is not None
    outputs, channels, *kernel = weight.shape
    axes: list[int] = []
    for axis, length in enumerate(kernel):
        taps = math.prod(kernel[i] for i in (*axes, axis))
        if length >= WIDE and outputs * taps <= MOST:
            axes.append(axis)
    if outputs > FEW or not axes:
        raise CannotLowerError("it has many outputs or a small kernel")
    sliding = window(node, kernel, static_shape(node.inputs[0])[2:])
    rest = [axis for axis in range(len(kernel)) if axis not in axes]
    taps = math.prod(kernel[axis] for axis in axes)
    used = taps * outputs
    made = ALIGNED * math.ceil(used / ALIGNED)

    order = [2 + axis for axis in axes]
    shares = np.moveaxis(weight, order, range(len(axes)))  # [taps..., O, C, others...]
    shares = shares.reshape(used, channels, *(1 if axis in axes else length for axis, length in enumerate(kernel)))
    shares = np.concatenate([shares, np.zeros((made - used, *shares.shape[1:]), shares.dtype)])
    sums = np.zeros(
        (outputs, made, *(kernel[axis] if axis in axes else 1 for axis in range(len(kernel)))), weight.dtype
    )
    flat = sums.reshape(outputs, made, taps)
    for tap in range(taps):
        flat[np.arange(outputs), tap * outputs + np.arange(outputs), tap] = 1

    editor = Editor(model, before=node)
    first = editor.op("Conv", node.inputs[0], editor.const(shares), **_along(sliding, rest))
    biases = list(node.inputs[2:])
    editor.replace([editor.op("Conv", first, editor.const(sums), *biases, **_along(sliding, axes))])


def _along(sliding: Window, axes: Sequence[int]) -> dict[str, Any]:
    """Attributes of a window over some axes alone."""

    def pick(numbers: tuple[int, ...], other: int) -> list[int]:
        return [number if axis in axes else other for axis, number in enumerate(numbers)]

    return {
        "kernel_shape": pick(sliding.kernel, 1),
        "strides": pick(sliding.strides, 1),
        "dilations": pick(sliding.dilations, 1),
        "pads": pick(sliding.before, 0) + pick(sliding.after, 0),
    }


PASS = Pass("tap-shares", "wide kernels with few outputs: shares of the taps, then their sum", apply)
