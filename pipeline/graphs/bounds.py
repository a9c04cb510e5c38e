"""Upper bounds of shapes that depend on data: what memory planning needs where inference knows no length."""

from __future__ import annotations

import math

import numpy as np
import onnx_ir as ir

from .model import constant
from .shapes import infer_node, known_shape


def bound_shapes(model: ir.Model) -> ir.Model:
    """Give each value whose shape depends on data the greatest shape that it can have; in place.

    For `Slice` the length of a window of fixed size (ends less starts is constant), else that of the input; for
    `Pad` the sum of both sides when that is constant; for `Compress`, `NonZero` and `Unique` all elements. Every
    later shape follows from these; what stays unknown stays so.
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
        elif node.op_type == "Pad" and (padded := _pad(node, source)) is not None:
            output.shape = ir.Shape(padded)
        elif node.op_type == "NonZero":
            output.shape = ir.Shape((len(source), math.prod(source)))
        elif node.op_type in ("Compress", "Unique"):
            output.shape = ir.Shape(source if "axis" in node.attributes else (math.prod(source),))
    return model


def _slice(node: ir.Node, source: tuple[int, ...]) -> tuple[int, ...]:
    shape = list(source)
    axes = constant(node.inputs[3]) if len(node.inputs) > 3 else np.arange(len(source))
    steps = constant(node.inputs[4]) if len(node.inputs) > 4 else np.ones(1)
    if axes is None or steps is None or (steps != 1).any():
        return source
    for axis, length in zip(axes.ravel(), _differences(node.inputs[2], node.inputs[1]), strict=False):
        if length is not None:
            shape[axis] = min(shape[axis], max(0, length))
    return tuple(shape)


def _pad(node: ir.Node, source: tuple[int, ...]) -> tuple[int, ...] | None:
    axes = constant(node.inputs[3]) if len(node.inputs) > 3 and node.inputs[3] is not None else np.arange(len(source))
    sums = affine(node.inputs[1])
    if axes is None or sums is None:
        return None
    shape = list(source)
    for place, axis in enumerate(axes.ravel()):
        added = _sum(sums[place], sums[place + len(axes)], 1)
        if not is_fixed(added):
            return None
        shape[axis] += added.get(None, 0)
    return tuple(shape)


Affine = dict[tuple[ir.Value, int] | None, int]
"""An integer as a sum: how often each element of an unknown vector is in it; None counts 1."""


def is_fixed(number: Affine) -> bool:
    """Whether a number does not depend on data."""
    return all(key is None for key in number)


def difference(a: Affine, b: Affine) -> int | None:
    """a - b, where it does not depend on data."""
    found = _sum(a, b, -1)
    return found.get(None, 0) if is_fixed(found) else None


def _differences(ends: ir.Value | None, starts: ir.Value | None) -> list[int | None]:
    a, b = affine(ends), affine(starts)
    if a is None or b is None:
        return []
    return [difference(end, start) for end, start in zip(a, b, strict=True)]


def affine(value: ir.Value | None) -> list[Affine] | None:
    """Each element of an integer vector as a sum of elements that depend on data and a constant."""
    shape = None if value is None else known_shape(value)
    if value is None or shape is None or len(shape) > 1:
        return None
    known = constant(value)
    if known is not None:
        return [{None: int(number)} for number in known.ravel()]
    node = value.producer()
    if node is not None and node.op_type in ("Add", "Sub"):
        a, b = affine(node.inputs[0]), affine(node.inputs[1])
        length = math.prod(shape)
        if a is not None and b is not None and {len(a), len(b)} <= {1, length}:
            sign = 1 if node.op_type == "Add" else -1
            return [_sum(a[i % len(a)], b[i % len(b)], sign) for i in range(length)]
    if node is not None and node.op_type == "Concat":
        parts = [affine(part) for part in node.inputs]
        if all(part is not None for part in parts):
            return [each for part in parts for each in part or ()]
    return [{(value, index): 1} for index in range(math.prod(shape))]


def _sum(a: Affine, b: Affine, sign: int) -> Affine:
    found = dict(a)
    for key, count in b.items():
        found[key] = found.get(key, 0) + sign * count
    return {key: count for key, count in found.items() if count}
