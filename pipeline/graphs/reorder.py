"""The same function with long sums in another order: what a graph's last digits are worth.

The channels over which convolutions and matrix products add are permuted, in the input and in the weights alike, and
so are the axes over which reductions add. The result is the same but for rounding.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from .lower.editing import Editor
from .model import attribute, constant
from .shapes import known_shape

SUMS = frozenset({"ReduceSum", "ReduceMean", "ReduceL1", "ReduceL2", "ReduceSumSquare", "ReduceLogSumExp"})


def reorder_sums(model: ir.Model, seed: int) -> int:
    """Permute the terms of every Conv, ConvTranspose, Gemm, MatMul, sum or mean; how many nodes. In place.

    Values keep their names. Nodes with one term, or a number of terms that is not known, stay.

    Args:
        model: prepared (`model.prepare`).
        seed: of the permutations.
    """
    random = np.random.Generator(np.random.PCG64([seed, 4]))
    changed = 0
    for node in list(model.graph):
        if node.domain:
            continue
        moves = [*_products(node, random), *_sums(node, random)]
        for index, axis, order in moves:
            value = node.inputs[index]
            assert value is not None
            node.replace_input_with(index, _permuted(Editor(model, before=node), value, axis, order))
        changed += bool(moves)
    return changed


_Move = tuple[int, int, np.ndarray]
"""Number of an input, its axis, and the order of that axis."""


def _products(node: ir.Node, random: np.random.Generator) -> Sequence[_Move]:
    axes = _summed_axes(node)
    shapes = [None if value is None else known_shape(value) for value in node.inputs[:2]]
    if axes is None or shapes[0] is None or shapes[1] is None:
        return ()
    first, second = shapes[0][axes[0]], shapes[1][axes[1]]
    groups = int(attribute(node, "group", 1)) if node.op_type in ("Conv", "ConvTranspose") else 1
    if first // groups < 2:
        return ()
    if first == second:  # each group in an order of its own
        parts = [random.permutation(first // groups) for _ in range(groups)]
        order = np.concatenate([part + index * len(part) for index, part in enumerate(parts)])
        return (0, axes[0], order), (1, axes[1], order)
    part = random.permutation(second)  # the weights hold the channels of one group: one order for all
    order = np.concatenate([part + index * second for index in range(groups)])
    return (0, axes[0], order), (1, axes[1], part)


def _summed_axes(node: ir.Node) -> tuple[int, int] | None:
    """The axis of the first and of the second input that are added over."""
    match node.op_type:
        case "Conv":
            return 1, 1
        case "ConvTranspose":
            return 1, 0
        case "Gemm":
            return int(not attribute(node, "transA", 0)), int(bool(attribute(node, "transB", 0)))
        case "MatMul":
            second = node.inputs[1]
            shape = None if second is None else known_shape(second)
            return -1, -1 if shape is not None and len(shape) == 1 else -2
    return None


def _sums(node: ir.Node, random: np.random.Generator) -> list[_Move]:
    value = node.inputs[0] if node.inputs else None
    shape = None if value is None else known_shape(value)
    if shape is None or node.op_type not in {*SUMS, "GlobalAveragePool"}:
        return []
    axes = range(2, len(shape)) if node.op_type == "GlobalAveragePool" else _reduced(node, len(shape))
    return [(0, axis, random.permutation(shape[axis])) for axis in axes if shape[axis] > 1]


def _reduced(node: ir.Node, rank: int) -> list[int]:
    if len(node.inputs) > 1 and node.inputs[1] is not None:
        found = constant(node.inputs[1])
        if found is None:
            return []
        given = found.tolist()
    else:
        given = attribute(node, "axes", [])
    if not given:
        return [] if attribute(node, "noop_with_empty_axes", 0) else list(range(rank))
    return [int(axis) % rank for axis in given]


def _permuted(editor: Editor, value: ir.Value, axis: int, order: np.ndarray) -> ir.Value:
    known = constant(value)
    if known is not None:
        return editor.const(np.ascontiguousarray(known.take(order, axis)))
    return editor.op("Gather", value, editor.const(order), axis=axis)
