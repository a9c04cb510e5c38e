"""The same function with every long sum in another order: what a graph's last digits are worth.

The channels over which a convolution or a matrix product adds are permuted, in its input and in its weights alike.
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from .lower.editing import Editor
from .model import attribute, constant
from .shapes import known_shape


def reorder_sums(model: ir.Model, seed: int) -> int:
    """Permute the summed channels of every Conv, ConvTranspose, Gemm and MatMul; how many were. In place.

    Values keep their names. Nodes whose number of summed channels is not known, or 1, stay.

    Args:
        model: prepared (`model.prepare`).
        seed: of the permutations.
    """
    random = np.random.Generator(np.random.PCG64([seed, 4]))
    changed = 0
    for node in list(model.graph):
        axes = _summed_axes(node)
        if axes is None:
            continue
        lengths = [known_shape(value) for value in node.inputs[:2] if value is not None]
        if len(lengths) != 2 or lengths[0] is None or lengths[1] is None:
            continue
        groups = int(attribute(node, "group", 1)) if node.op_type in ("Conv", "ConvTranspose") else 1
        first, second = lengths[0][axes[0]], lengths[1][axes[1]]
        within = [random.permutation(first // groups) for _ in range(groups)]
        if first // groups < 2:
            continue
        orders = [np.concatenate([order + index * len(order) for index, order in enumerate(within)])] * 2
        if second != first:  # the weights of grouped convolutions hold the channels of one group: one order for all
            orders = [np.concatenate([within[0] + index * len(within[0]) for index in range(groups)]), within[0]]
        editor = Editor(model, before=node)
        for index, (axis, order) in enumerate(zip(axes, orders, strict=True)):
            value = node.inputs[index]
            assert value is not None
            node.replace_input_with(index, _permuted(editor, value, axis, order))
        changed += 1
    return changed


def _summed_axes(node: ir.Node) -> tuple[int, int] | None:
    """The axis of the first and of the second input that are added over."""
    if node.domain:
        return None
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


def _permuted(editor: Editor, value: ir.Value, axis: int, order: np.ndarray) -> ir.Value:
    known = constant(value)
    if known is not None:
        return editor.const(np.ascontiguousarray(known.take(order, axis)))
    return editor.op("Gather", value, editor.const(order), axis=axis)
