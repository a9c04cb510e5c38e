"""Normalisations above rank 4, on packed tensors."""

from __future__ import annotations

import math
from collections.abc import Sequence

import onnx_ir as ir

from ..model import attribute
from .packing import Groups, Packed
from .passes import CannotLowerError
from .rank import Rule, Walk, rank_pass


def batch(walk: Walk, node: ir.Node) -> Sequence[Packed]:
    """BatchNormalization at inference: channels alone in the second physical axis, whatever the others are."""
    source = walk.get(node.inputs[0])
    if attribute(node, "training_mode", 0) or len(node.outputs) > 1:
        raise CannotLowerError("it is in training mode")
    if len(source.groups) < 2 or source.groups[1] != (1,):
        source = walk.packed(source, ((0,), (1,), tuple(range(2, len(source.shape)))))
    return [_apply(walk, node, source)]


def statistics(walk: Walk, node: ir.Node) -> Sequence[Packed]:
    """InstanceNormalization and GroupNormalization: everything but batch and channels in one axis."""
    source = walk.get(node.inputs[0])
    groups: Groups = ((0,), (1,), tuple(range(2, len(source.shape))))
    return [_apply(walk, node, walk.packed(source, groups))]


def layer(walk: Walk, node: ir.Node) -> Sequence[Packed]:
    """LayerNormalization over the last axes: two physical axes, what stays and what is normalised."""
    source = walk.get(node.inputs[0])
    if len(node.outputs) > 1:
        raise CannotLowerError("its mean or deviation is an output")
    axis = int(attribute(node, "axis", -1)) % len(source.shape)
    groups = (tuple(range(axis)), tuple(range(axis, len(source.shape))))
    held = walk.packed(source, groups)
    flat = [math.prod(source.shape[axis:])]
    scales = [
        None if value is None else walk.editor.reshape(walk.editor.op("Expand", value, walk.editor.const(
            list(source.shape[axis:]))), flat)
        for value in node.inputs[1:]
    ]  # fmt: skip
    attributes = {name: attr.value for name, attr in node.attributes.items() if name != "axis"}
    value = walk.editor.op("LayerNormalization", held.value, *scales, axis=1, **attributes)
    return [Packed(value, source.shape, groups)]


def _apply(walk: Walk, node: ir.Node, source: Packed) -> Packed:
    attributes = {name: attr.value for name, attr in node.attributes.items()}
    value = walk.editor.op(node.op_type, source.value, *node.inputs[1:], **attributes)
    return Packed(value, source.shape, source.groups)


RULES: dict[str, Rule] = {
    "BatchNormalization": batch,
    "InstanceNormalization": statistics,
    "GroupNormalization": statistics,
    "LayerNormalization": layer,
}

PASS = rank_pass("normalisation-rank", "normalisations above rank 4", RULES)
