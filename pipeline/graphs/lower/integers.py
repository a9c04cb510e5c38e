"""Whole numbers that were made from float32 and become float32 again, as float32 all along.

WebGPU has no 64-bit integers: its runtimes compute them on the CPU, and every number that goes there and back
stops the queue. Exact: it is done only where all numbers are proven to lie below 2^24.
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from ..model import attribute, constant, describe
from .editing import Editor
from .intervals import interval
from .passes import Outcome, Pass

EXACT = float(1 << 24)
"""Whole numbers up to here are exact in float32."""

INTEGERS = (ir.DataType.INT64, ir.DataType.INT32)

MOVES = frozenset({"Gather", "Reshape", "Squeeze", "Unsqueeze", "Slice", "Transpose"})
WHOLE = frozenset({"Round", "Floor", "Ceil"})


def as_float(editor: Editor, value: ir.Value) -> ir.Value | None:
    """A float32 value equal to an integer one, made without integers; None where that is not proven to be exact."""
    bounds = interval(value)
    if value.dtype not in INTEGERS or bounds is None or not bounds.within(-EXACT, EXACT):
        return None
    known = constant(value)
    if known is not None:
        return editor.const(known.astype(np.float32))
    node = value.producer()
    if node is None or node.domain:
        return None
    first = node.inputs[0]
    if node.op_type == "Cast" and first is not None and first.dtype == ir.DataType.FLOAT:
        return _truncated(editor, first)
    if node.op_type in MOVES and first is not None:
        moved = as_float(editor, first)
        return None if moved is None else _again(editor, node, [moved, *node.inputs[1:]])
    if node.op_type in ("Add", "Sub", "Concat"):
        parts = [as_float(editor, part) for part in node.inputs if part is not None]
        return None if any(part is None for part in parts) else _again(editor, node, parts)
    return None


def _again(editor: Editor, node: ir.Node, inputs: list[ir.Value | None]) -> ir.Value:
    attributes = {name: attribute(node, name) for name in node.attributes}
    return editor.op(node.op_type, *inputs, **attributes)


def _truncated(editor: Editor, value: ir.Value) -> ir.Value:
    """Cut towards zero, as Cast does."""
    node = value.producer()
    if node is not None and not node.domain and node.op_type in WHOLE:
        return value
    below = editor.op("Less", value, editor.const(np.float32(0)))
    return editor.op("Where", below, editor.op("Ceil", value), editor.op("Floor", value))


def _apply(model: ir.Model) -> Outcome:
    outcome = Outcome()
    for node in list(model.graph):
        value = node.inputs[0] if node.op_type == "Cast" and not node.domain else None
        if value is None or value.dtype not in INTEGERS or attribute(node, "to") != ir.DataType.FLOAT.value:
            continue
        editor = Editor(model, before=node)
        result = as_float(editor, value)
        if result is None:
            outcome.left[describe(node)] = "whole numbers that are not proven to be below 2^24 and made from float32"
            continue
        outcome.rewritten.append(describe(node))
        editor.replace([result])
    return outcome


PASS = Pass("integers", "whole numbers between float32 ones as float32", _apply)
