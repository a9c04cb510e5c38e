"""Operators that WebGPU has no kernel for, spelled out in ones that it has: exact for numbers that are not NaN."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx_ir as ir

from ..model import describe
from .editing import Editor
from .passes import CannotLowerError, Outcome, Pass


def _smaller(editor: Editor, a: ir.Value, b: ir.Value) -> ir.Value:
    return editor.op("Where", editor.op("Less", a, b), a, b)


def _larger(editor: Editor, a: ir.Value, b: ir.Value) -> ir.Value:
    return editor.op("Where", editor.op("Greater", a, b), a, b)


def _sum(editor: Editor, a: ir.Value, b: ir.Value) -> ir.Value:
    return editor.op("Add", a, b)


def _round(editor: Editor, value: ir.Value) -> ir.Value:
    """To the nearest whole number, halves to the even one; value - floor is exact in floating point."""
    half, one, two = (editor.const(np.float32(number)) for number in (0.5, 1, 2))
    below = editor.op("Floor", value)
    over = editor.op("Sub", value, below)
    above = editor.op("Add", below, one)
    even = editor.op("Equal", editor.op("Mul", editor.op("Floor", editor.op("Mul", below, half)), two), below)
    tie = editor.op("Where", even, below, above)
    down = editor.op("Where", editor.op("Less", over, half), below, tie)
    return editor.op("Where", editor.op("Greater", over, half), above, down)


def _sign(editor: Editor, value: ir.Value) -> ir.Value:
    zero, one, minus = (editor.const(np.float32(number)) for number in (0, 1, -1))
    negative = editor.op("Where", editor.op("Less", value, zero), minus, zero)
    return editor.op("Where", editor.op("Greater", value, zero), one, negative)


FOLDS: dict[str, Callable[[Editor, ir.Value, ir.Value], ir.Value]] = {"Min": _smaller, "Max": _larger, "Sum": _sum}
"""Operators of any number of inputs, two at a time from the left, as ONNX Runtime does."""

SINGLE: dict[str, Callable[[Editor, ir.Value], ir.Value]] = {"Round": _round, "Sign": _sign}

OPERATORS = frozenset({*FOLDS, *SINGLE, "Mean"})


def _spell(editor: Editor, node: ir.Node) -> ir.Value:
    inputs = [value for value in node.inputs if value is not None]
    if any(value.dtype != ir.DataType.FLOAT for value in inputs):
        raise CannotLowerError("only float32")
    if node.op_type in SINGLE:
        return SINGLE[node.op_type](editor, inputs[0])
    total = inputs[0]
    for value in inputs[1:]:
        total = FOLDS[node.op_type if node.op_type in FOLDS else "Sum"](editor, total, value)
    if node.op_type == "Mean":  # as ONNX Runtime computes it
        total = editor.op("Mul", total, editor.const(np.float32(1) / np.float32(len(inputs))))
    return total


def _apply(model: ir.Model) -> Outcome:
    outcome = Outcome()
    for node in list(model.graph):
        if node.domain or node.op_type not in OPERATORS:
            continue
        editor = Editor(model, before=node)
        try:
            result = _spell(editor, node)
        except CannotLowerError as reason:
            outcome.left[describe(node)] = str(reason)
            continue
        outcome.rewritten.append(describe(node))
        editor.replace([result])
    return outcome


PASS = Pass("spelled", "Min, Max, Sum, Mean, Round and Sign as operators that WebGPU has", _apply)
