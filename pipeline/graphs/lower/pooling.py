"""3-D pooling as 2-D pooling of slices, then of depth; means and maxima are separable."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from ..model import attribute, static_shape
from .packing import Packed
from .passes import CannotLowerError
from .rank import Rule, Walk, rank_pass
from .volumes import DEPTH_BATCH, DEPTH_SPATIAL, volume, window

SHARED = ("ceil_mode", "count_include_pad", "p")


def pool(walk: Walk, node: ir.Node) -> Sequence[Packed]:
    """MaxPool, AveragePool, LpPool over D, H, W.

    A mean over the window's part inside the volume is a mean of means: every slice counts as many pixels.
    """
    source = volume(walk, node.inputs[0])
    if len(node.outputs) > 1 and node.outputs[1].uses():
        raise CannotLowerError("the indices of the maxima are used")
    kernel = [int(n) for n in attribute(node, "kernel_shape")]
    sliding = window(node, kernel, source.shape[2:])
    shape = static_shape(node.outputs[0])
    shared = {name: node.attributes[name].value for name in SHARED if name in node.attributes}
    keep = {} if "dilations" in node.attributes else {"dilations"}
    flat = {name: value for name, value in sliding.flat().items() if name not in keep}
    slices = walk.packed(source, DEPTH_BATCH)
    value = walk.editor.op(node.op_type, slices.value, **flat, **shared)
    packed = Packed(value, (*shape[:2], source.shape[2], *shape[3:]), DEPTH_BATCH)
    if not sliding.depth_only_one:
        deep = {name: value for name, value in sliding.deep().items() if name not in keep}
        column = walk.packed(packed, DEPTH_SPATIAL)
        packed = Packed(walk.editor.op(node.op_type, column.value, **deep, **shared), shape, DEPTH_SPATIAL)
    outputs = [packed]
    if len(node.outputs) > 1:
        raise CannotLowerError("it has an output of indices")
    return outputs


RULES: dict[str, Rule] = dict.fromkeys(("MaxPool", "AveragePool", "LpPool"), pool)

PASS = rank_pass("pool3d", "3-D pooling as 2-D pooling of slices and of depth", RULES)
