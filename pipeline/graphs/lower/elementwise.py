"""Element-by-element operators on packed tensors."""

from __future__ import annotations

import math
from collections.abc import Sequence

import onnx_ir as ir

from ..model import static_shape
from .editing import Editor
from .packing import MAX_RANK, Groups, Packed, repack
from .passes import CannotLowerError
from .rank import Rule, Walk, rank_pass

UNARY = [
    "Abs",
    "Acos",
    "Acosh",
    "Asin",
    "Asinh",
    "Atan",
    "Atanh",
    "BitwiseNot",
    "Cast",
    "CastLike",
    "Ceil",
    "Celu",
    "Clip",
    "Cos",
    "Cosh",
    "Elu",
    "Erf",
    "Exp",
    "Floor",
    "Gelu",
    "HardSigmoid",
    "HardSwish",
    "Identity",
    "IsInf",
    "IsNaN",
    "LeakyRelu",
    "Log",
    "Mish",
    "Neg",
    "Not",
    "Reciprocal",
    "Relu",
    "Round",
    "Selu",
    "Shrink",
    "Sigmoid",
    "Sign",
    "Sin",
    "Sinh",
    "Softplus",
    "Softsign",
    "Sqrt",
    "Tan",
    "Tanh",
    "ThresholdedRelu",
]
"""Operators that give each element of their first input a value; further inputs are scalars."""

BROADCAST = [
    "Add",
    "And",
    "BitShift",
    "BitwiseAnd",
    "BitwiseOr",
    "BitwiseXor",
    "Div",
    "Equal",
    "Greater",
    "GreaterOrEqual",
    "Less",
    "LessOrEqual",
    "Max",
    "Mean",
    "Min",
    "Mod",
    "Mul",
    "Or",
    "Pow",
    "PRelu",
    "Sub",
    "Sum",
    "Where",
    "Xor",
]
"""Operators whose inputs are broadcast against one another."""


def unary(walk: Walk, node: ir.Node) -> Sequence[Packed]:
    """The same operator on the physical tensor."""
    source = walk.get(node.inputs[0])
    attributes = {name: attr.value for name, attr in node.attributes.items()}
    value = walk.editor.op(node.op_type, source.value, *node.inputs[1:], **attributes)
    return [Packed(value, source.shape, source.groups)]


def broadcast(walk: Walk, node: ir.Node) -> Sequence[Packed]:
    """The same operator on physical tensors whose axes match or are 1."""
    shape = static_shape(node.outputs[0])
    operands = [_padded(walk.get(value), len(shape)) for value in node.inputs]
    largest = max(operands, key=lambda operand: operand.size)
    groups = _groups(shape, operands, largest)
    while groups is None:  # too many kinds of neighbours: make the smallest mixed operand whole
        index = min(
            (i for i, operand in enumerate(operands) if operand.shape != shape and operand.size > 1),
            key=lambda i: operands[i].size,
        )
        operands[index] = expand(walk.editor, operands[index], shape)
        groups = _groups(shape, operands, largest)
    attributes = {name: attr.value for name, attr in node.attributes.items()}
    values = [repack(walk.editor, operand, groups).value for operand in operands]
    return [Packed(walk.editor.op(node.op_type, *values, **attributes), shape, groups)]


def expand(editor: Editor, packed: Packed, shape: Sequence[int]) -> Packed:
    """A tensor with some axes of length 1 repeated to `shape`, axis by axis, in its own order."""
    for axis, (length, wanted) in enumerate(zip(packed.shape, shape, strict=True)):
        if length == wanted:
            continue
        flat = [other for group in packed.groups for other in group]
        index = flat.index(axis)
        groups: Groups = (tuple(flat[:index]), (axis,), tuple(flat[index + 1 :]))
        before, _, after = (math.prod(packed.shape[other] for other in group) for group in groups)
        value = editor.op("Expand", repack(editor, packed, groups).value, editor.const([before, wanted, after]))
        packed = Packed(value, (*packed.shape[:axis], wanted, *packed.shape[axis + 1 :]), groups)
    return packed


def _padded(packed: Packed, rank: int) -> Packed:
    """The tensor with axes of length 1 in front."""
    extra = rank - len(packed.shape)
    if extra < 0:
        raise CannotLowerError("an input has a higher rank than the output")
    groups = tuple(tuple(axis + extra for axis in group) for group in packed.groups)
    front = tuple(range(extra))
    groups = ((front + groups[0]), *groups[1:]) if groups else (front,)
    return Packed(packed.value, (1,) * extra + packed.shape, groups)


def _groups(shape: Sequence[int], operands: Sequence[Packed], largest: Packed) -> Groups | None:
    """Groups in which every operand's physical axes are whole or 1; None when that takes more than `MAX_RANK`."""

    def fits(group: Sequence[int]) -> bool:
        axes = [axis for axis in group if shape[axis] != 1]
        return all(len({operand.shape[axis] == 1 for axis in axes}) <= 1 for operand in operands)

    if len(largest.groups) <= MAX_RANK and all(fits(group) for group in largest.groups):
        return largest.groups
    groups: list[list[int]] = []
    for axis in (axis for group in largest.groups for axis in group):
        if groups and fits([*groups[-1], axis]):
            groups[-1].append(axis)
        else:
            groups.append([axis])
    return tuple(tuple(group) for group in groups) if len(groups) <= MAX_RANK else None


RULES: dict[str, Rule] = {**dict.fromkeys(UNARY, unary), **dict.fromkeys(BROADCAST, broadcast)}

PASS = rank_pass("elementwise-rank", "element-by-element operators above rank 4", RULES)
