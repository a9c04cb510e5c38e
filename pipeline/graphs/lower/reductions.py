"""Operators along one axis or over some: reductions, Softmax, CumSum, ArgMax, on packed tensors."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from ..model import attribute, constant, static_shape
from .packing import Packed, isolate, separate
from .passes import CannotLowerError
from .rank import Rule, Walk, rank_pass

REDUCTIONS = tuple(
    f"Reduce{kind}" for kind in ("L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "Sum", "SumSquare")
)


def reduction(walk: Walk, node: ir.Node) -> Sequence[Packed]:
    """Whole physical axes reduced."""
    source = walk.get(node.inputs[0])
    given = constant(node.inputs[1]) if len(node.inputs) > 1 else None
    if len(node.inputs) > 1 and node.inputs[1] is not None and given is None:
        raise CannotLowerError("its axes are not constant")
    named = given.tolist() if given is not None else attribute(node, "axes", [])
    axes = [int(axis) % len(source.shape) for axis in named]
    if not axes:
        if attribute(node, "noop_with_empty_axes", 0):
            return [source]
        axes = list(range(len(source.shape)))
    source, physical = separate(walk.editor, source, axes)
    by_input = walk.editor.opset >= 18 or node.op_type == "ReduceSum"
    if by_input:
        value = walk.editor.op(node.op_type, source.value, walk.editor.const(physical), keepdims=0)
    else:
        value = walk.editor.op(node.op_type, source.value, axes=physical, keepdims=0)
    return [
        _without(source, physical, axes, value, static_shape(node.outputs[0]), bool(attribute(node, "keepdims", 1)))
    ]


def global_pool(walk: Walk, node: ir.Node) -> Sequence[Packed]:
    """Mean or maximum over all axes but the first two."""
    source = walk.get(node.inputs[0])
    axes = list(range(2, len(source.shape)))
    source, physical = separate(walk.editor, source, axes)
    op_type = {"GlobalAveragePool": "ReduceMean", "GlobalMaxPool": "ReduceMax"}[node.op_type]
    if walk.editor.opset >= 18:
        value = walk.editor.op(op_type, source.value, walk.editor.const(physical), keepdims=0)
    else:
        value = walk.editor.op(op_type, source.value, axes=physical, keepdims=0)
    return [_without(source, physical, axes, value, static_shape(node.outputs[0]), True)]


def along(walk: Walk, node: ir.Node) -> Sequence[Packed]:
    """Softmax, LogSoftmax, Hardmax: the same operator along the axis' physical axis."""
    source = walk.get(node.inputs[0])
    axis = int(attribute(node, "axis", -1)) % len(source.shape)
    source = isolate(walk.editor, source, axis)
    return [Packed(walk.editor.op(node.op_type, source.value, axis=source.home(axis)), source.shape, source.groups)]


def cumsum(walk: Walk, node: ir.Node) -> Sequence[Packed]:
    """A running sum along the axis."""
    source = walk.get(node.inputs[0])
    axis = constant(node.inputs[1])
    if axis is None:
        raise CannotLowerError("its axis is not constant")
    source = isolate(walk.editor, source, int(axis) % len(source.shape))
    flags = {name: attr.value for name, attr in node.attributes.items()}
    home = walk.editor.const(np.asarray(source.home(int(axis) % len(source.shape)), np.int64))
    return [Packed(walk.editor.op("CumSum", source.value, home, **flags), source.shape, source.groups)]


def arg(walk: Walk, node: ir.Node) -> Sequence[Packed]:
    """ArgMax and ArgMin along the axis."""
    source = walk.get(node.inputs[0])
    axis = int(attribute(node, "axis", 0)) % len(source.shape)
    source = isolate(walk.editor, source, axis)
    last = int(attribute(node, "select_last_index", 0))
    value = walk.editor.op(node.op_type, source.value, axis=source.home(axis), keepdims=0, select_last_index=last)
    return [
        _without(
            source,
            [source.home(axis)],
            [axis],
            value,
            static_shape(node.outputs[0]),
            bool(attribute(node, "keepdims", 1)),
        )
    ]


def _without(
    source: Packed, gone: Sequence[int], axes: Sequence[int], value: ir.Value, shape: tuple[int, ...], keep: bool
) -> Packed:
    """The tensor after whole physical axes went; logical axes are kept at length 1 or go, too."""
    left = [axis for axis in range(len(source.shape)) if axis not in axes]
    renamed = {axis: axis if keep else index for index, axis in enumerate(left)}
    groups = [
        tuple(renamed[axis] for axis in group if axis in renamed)
        for index, group in enumerate(source.groups)
        if index not in gone
    ]
    loose = [axis for index in gone for axis in source.groups[index]]
    ones = tuple(renamed.get(axis, axis) for axis in loose if axis in renamed or keep)
    ones += tuple(axis for axis in axes if keep and axis not in loose)
    if not groups:
        return Packed(value, shape, (ones,)) if ones else Packed(value, shape, ())
    return Packed(value, shape, ((*ones, *groups[0]), *groups[1:]))


RULES: dict[str, Rule] = {
    **dict.fromkeys(REDUCTIONS, reduction),
    **dict.fromkeys(("GlobalAveragePool", "GlobalMaxPool"), global_pool),
    **dict.fromkeys(("Softmax", "LogSoftmax", "Hardmax"), along),
    "CumSum": cumsum,
    **dict.fromkeys(("ArgMax", "ArgMin"), arg),
}

PASS = rank_pass("reductions-rank", "reductions and softmax above rank 4", RULES)
