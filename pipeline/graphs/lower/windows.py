"""Slice and Pad at places that the graph computes, as Gather.

Their places are 64-bit integers in the CPU's memory on every runtime: on WebGPU each frame would wait for them. Here
the places stay float32 until they are indices. Exact: done only where a window is proven to lie inside its tensor.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import onnx_ir as ir

from ..bounds import Affine, affine, difference, is_fixed
from ..model import attribute, constant, describe
from ..shapes import infer_shapes, known_shape
from .editing import Editor
from .integers import EXACT, as_float
from .intervals import interval
from .passes import CannotLowerError, Outcome, Pass


def slices(editor: Editor, node: ir.Node) -> ir.Value:
    """A window of fixed size from a place that depends on data."""
    value, shape = _source(node)
    axes, steps = _axes(node, shape), _parameter(node, 4)
    step = np.ones(1) if steps is None else constant(steps)
    if step is None or (step != 1).any():
        raise CannotLowerError("its step is not 1")
    starts, ends = _numbers(node.inputs[1]), _numbers(node.inputs[2])
    moving = []
    for axis, start, end in zip(axes, starts, ends, strict=True):
        if is_fixed(start) and is_fixed(end):
            value = editor.slice(value, axis, start.get(None, 0), end.get(None, 0))
            continue
        length = difference(end, start)
        if length is None:
            raise CannotLowerError("the size of its window depends on data")
        low, high = _bounds(start)
        if low < 0 or length < 1 or high + length > shape[axis]:
            raise CannotLowerError("its window is not proven to lie inside")
        moving.append((axis, length, start))
    for axis, length, start in moving:
        place = editor.op("Add", editor.const(np.arange(length, dtype=np.float32)), _place(editor, start))
        value = editor.op("Gather", value, editor.op("Cast", place, to=ir.DataType.INT32.value), axis=axis)
    return value


def pad(editor: Editor, node: ir.Node) -> ir.Value:
    """A tensor at a place that depends on data, in a larger one of fixed size."""
    value, shape = _source(node)
    if attribute(node, "mode", "constant") != "constant":
        raise CannotLowerError("its mode is not 'constant'")
    if value.dtype != ir.DataType.FLOAT:
        raise CannotLowerError(f"type {value.dtype} (only float32)")
    around = _parameter(node, 2) or editor.const(np.float32(0))
    axes, pads = _axes(node, shape), _numbers(node.inputs[1])
    for place, axis in enumerate(axes):
        before, after = pads[place], pads[place + len(axes)]
        added = difference(before, {key: -count for key, count in after.items()})
        if added is None:
            raise CannotLowerError("the size of its result depends on data")
        length = shape[axis] + added
        low, high = _bounds(before)
        if low < -EXACT / 2 or high > EXACT / 2 or length < 1:
            raise CannotLowerError("its place has no proven bounds")
        if is_fixed(before) and not before.get(None) and not added:
            continue
        indices = editor.const(np.arange(length, dtype=np.float32))
        wanted = editor.op("Sub", indices, _place(editor, before))
        held = editor.op("Clip", wanted, editor.const(np.float32(0)), editor.const(np.float32(shape[axis] - 1)))
        column = [length, *[1] * (len(shape) - axis - 1)]
        inside = editor.op("Equal", editor.reshape(wanted, column), editor.reshape(held, column))
        taken = editor.op("Gather", value, editor.op("Cast", held, to=ir.DataType.INT32.value), axis=axis)
        value = editor.op("Where", inside, taken, around)
    return value


RULES: dict[str, Callable[[Editor, ir.Node], ir.Value]] = {"Slice": slices, "Pad": pad}


def _source(node: ir.Node) -> tuple[ir.Value, tuple[int, ...]]:
    value = node.inputs[0]
    shape = None if value is None else known_shape(value)
    if value is None or shape is None or 0 in shape:
        raise CannotLowerError("the shape of its input is not known, or empty")
    return value, shape


def _parameter(node: ir.Node, index: int) -> ir.Value | None:
    return node.inputs[index] if len(node.inputs) > index else None


def _axes(node: ir.Node, shape: Sequence[int]) -> list[int]:
    given = _parameter(node, 3)
    if given is None:
        return list(range(len(shape)))
    known = constant(given)
    if known is None:
        raise CannotLowerError("its axes are not constant")
    return [int(axis) % len(shape) for axis in known.ravel()]


def _numbers(value: ir.Value | None) -> list[Affine]:
    found = affine(value)
    if found is None:
        raise CannotLowerError("how many places it has is not known")
    return found


def _bounds(number: Affine) -> tuple[float, float]:
    """Between which numbers a sum lies."""
    low = high = float(number.get(None, 0))
    for key, count in number.items():
        bounds = None if key is None else interval(key[0])
        if key is None:
            continue
        if bounds is None:
            return -np.inf, np.inf
        ends = [count * float(side.ravel()[key[1]]) for side in (bounds.low, bounds.high)]
        low, high = low + min(ends), high + max(ends)
    return low, high


def _place(editor: Editor, number: Affine) -> ir.Value:
    """The sum as a float32 scalar [1]."""
    total = editor.const(np.asarray([number.get(None, 0)], np.float32))
    for key, count in number.items():
        if key is None:
            continue
        value, index = key
        bounds = interval(value)
        if bounds is None or not bounds.within(-EXACT / 4, EXACT / 4) or abs(count) != 1:
            raise CannotLowerError("its place has no proven bounds")
        numbers = as_float(editor, value) or editor.op("Cast", value, to=ir.DataType.FLOAT.value)
        flat = editor.reshape(numbers, [bounds.low.size])
        term = editor.slice(flat, 0, index, index + 1) if bounds.low.size > 1 else flat
        total = editor.op("Add" if count > 0 else "Sub", total, term)
    return total


def _apply(model: ir.Model) -> Outcome:
    outcome = Outcome()
    for node in list(model.graph):
        if node.domain or node.op_type not in RULES or len(node.inputs) < 2:
            continue
        if all(value is None or constant(value) is not None for value in node.inputs[1:]):
            continue
        try:
            result = RULES[node.op_type](Editor(model, before=node), node)
        except CannotLowerError as reason:
            outcome.left[describe(node)] = str(reason)
            continue
        outcome.rewritten.append(describe(node))
        Editor(model, before=node).replace([result])
    if outcome.rewritten:
        infer_shapes(model)  # a window's size was not known to inference
    return outcome


PASS = Pass("windows", "Slice and Pad at computed places as Gather", _apply)
