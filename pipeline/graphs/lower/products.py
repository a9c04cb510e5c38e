"""Matrix products above rank 4, on packed tensors."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from ..model import static_shape
from .elementwise import expand
from .packing import Groups, Packed
from .passes import CannotLowerError
from .rank import Rule, Walk, rank_pass


def matmul(walk: Walk, node: ir.Node) -> Sequence[Packed]:
    """All batch axes in one; an operand without any is shared, others are repeated to the output's."""
    shape = static_shape(node.outputs[0])
    rank = len(shape)
    operands = [walk.get(value) for value in node.inputs]
    if any(len(operand.shape) < 2 for operand in operands):
        raise CannotLowerError("an operand is a vector")
    groups: Groups = (tuple(range(rank - 2)), (rank - 2,), (rank - 1,))
    values = []
    for operand in operands:
        extra = rank - len(operand.shape)
        moved = tuple(tuple(axis + extra for axis in group) for group in operand.groups)
        whole = Packed(operand.value, (1,) * extra + operand.shape, ((*range(extra), *moved[0]), *moved[1:]))
        if any(length != 1 for length in whole.shape[:-2]):
            whole = expand(walk.editor, whole, (*shape[:-2], *whole.shape[-2:]))
        values.append(walk.packed(whole, groups).value)
    return [Packed(walk.editor.op("MatMul", *values), shape, groups)]


RULES: dict[str, Rule] = {"MatMul": matmul}

PASS = rank_pass("matmul-rank", "matrix products above rank 4", RULES)
