"""Upper bounds of shapes that depend on data: what memory planning needs where inference knows no length."""

from __future__ import annotations

import math

import numpy as np
import onnx_ir as ir

from .model import constant
from .shapes import infer_node, known_shape


def bound_shapes(model: ir.Model) -> ir.Model:
    """Give each value whose shape depends on data the greatest shape that it can have; in place.

    For `Slice` the length of a window of fixed size (ends = starts + constant), else that of the input; for
    `Compress`, `NonZero` and `Unique` all elements. Every later shape follows from these.
    """
    opsets = dict(model.opset_imports)
    for node in model.graph:
        if all(known_shape(value) is not None for value in node.outputs if value.name):
            continue
        infer_node(node, opsets)
        output = node.outputs[0]
        if known_shape(output) is not None or node.inputs[0] is None:
            continue
        source = known_shape(node.inputs[0])
        if source is None:
            continue
        if node.op_type == "Slice":
            output.shape = ir.Shape(_slice(node, source))
        elif node.op_type == "NonZero":
            output.shape = ir.Shape((len(source), math.prod(source)))
        elif node.op_type in ("Compress", "Unique"):
            output.shape = ir.Shape(source if "axis" in node.attributes else (math.prod(source),))
    return model


def _slice(node: ir.Node, source: tuple[int, ...]) -> tuple[int, ...]:
    shape = list(source)
    axes = constant(node.inputs[3]) if len(node.inputs) > 3 else np.arange(len(source))
    size = _window(node)
    if axes is None or size is None:
        return source
    for axis, length in zip(axes.ravel(), size, strict=True):
        shape[axis] = min(shape[axis], max(0, int(length)))
    return tuple(shape)


def _window(node: ir.Node) -> np.ndarray | None:
    """Greatest lengths of a slice, known when its end is its start plus a constant."""
    starts, ends = node.inputs[1], node.inputs[2]
    made = None if ends is None else ends.producer()
    steps = constant(node.inputs[4]) if len(node.inputs) > 4 else None
    if starts is None or made is None or made.op_type != "Add" or (steps is not None and (steps != 1).any()):
        return None
    if starts.shape is None or starts not in made.inputs:
        return None
    other = made.inputs[1] if made.inputs[0] is starts else made.inputs[0]
    size = constant(other)
    shape = known_shape(starts)
    return None if size is None or shape is None else np.broadcast_to(size, shape).ravel()
