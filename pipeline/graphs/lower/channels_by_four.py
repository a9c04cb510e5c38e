"""Input channels filled up to a multiple of 4 with zeros, where ONNX Runtime's WebGPU provider reads them by threes.

Its convolution by tiles (conv2d_mm.cc) takes four output channels at once and the input channels by fours or, where
they are a multiple of 3 only, by threes. By threes it reads channels c, c + 1, c + 2 from c / 4 on instead of c: three
channels come out right, and six, nine and so on wrong.
"""

from __future__ import annotations

import math

import numpy as np
import onnx_ir as ir

from ..model import attribute, constant, describe, static_shape
from ..shapes import known_shape
from .editing import Editor
from .passes import Outcome, Pass

BLOCK = 4
"""Channels that are read right are a multiple of this."""


def read_by_threes(node: ir.Node) -> bool:
    """Whether a node is a convolution that the provider gets wrong; of unknown shape it is not.

    One tap without steps and padding is a product of matrices, groups and volumes have kernels of their own: all right.
    """
    value, weight = (*node.inputs[:2], None, None)[:2]
    if node.op_type != "Conv" or node.domain not in ("", "ai.onnx") or value is None or weight is None:
        return False
    shape = known_shape(weight)
    if shape is None or len(shape) > 4 or int(attribute(node, "group", 1)) != 1:
        return False
    out, channels, *kernel = shape
    single = (
        math.prod(kernel) == 1 and not any(attribute(node, "pads", [])) and set(attribute(node, "strides", [])) <= {1}
    )
    return channels > 3 and channels % 3 == 0 and channels % BLOCK != 0 and out % BLOCK == 0 and not single


def fill_up(editor: Editor, value: ir.Value, rank: int, missing: int) -> ir.Value:
    """[N, C, ...] with `missing` zeros more on the second axis; constants at once."""
    known = constant(value)
    if known is not None:
        return editor.const(np.pad(known, [(0, missing if axis == 1 else 0) for axis in range(rank)]))
    return editor.op("Pad", value, editor.const([*[0] * (rank + 1), missing, *[0] * (rank - 2)]))


def _apply(model: ir.Model) -> Outcome:
    outcome = Outcome()
    for node in [node for node in model.graph if read_by_threes(node)]:
        value, weight = node.inputs[:2]
        assert value is not None
        assert weight is not None
        _, channels, *kernel = static_shape(weight)
        editor = Editor(model, before=node)
        for place, each in enumerate((value, weight)):
            node.replace_input_with(place, fill_up(editor, each, len(kernel) + 2, -channels % BLOCK))
        outcome.rewritten.append(describe(node))
    return outcome


PASS = Pass("channels-by-four", "input channels that WebGPU would read by threes, filled up to a multiple of 4", _apply)
