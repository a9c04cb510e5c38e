"""Biases that a normalisation takes away again.

InstanceNormalization subtracts each channel's mean, so that a number added to a whole channel before it has no
effect, also where it comes by way of sums and repeated pixels.
"""

from __future__ import annotations

import onnx_ir as ir

from ..model import constant, describe
from ..shapes import known_shape
from .editing import Editor
from .nearest import repeats
from .passes import Outcome, Pass


def apply(model: ir.Model) -> Outcome:
    """Drop the constant biases of convolutions whose result reaches nothing but instance normalisations."""
    outcome = Outcome()
    for node in reversed(list(model.graph)):
        if node.op_type != "Conv" or node.domain or len(node.inputs) < 3 or constant(node.inputs[2]) is None:
            continue
        if not _shift_vanishes(node.outputs[0]):
            outcome.left[describe(node)] = "its bias reaches more than instance normalisations"
            continue
        outcome.rewritten.append(describe(node))
        editor = Editor(model, before=node)
        settings = {a.name: a.value for a in node.attributes.values()}
        editor.replace([editor.op("Conv", *node.inputs[:2], **settings)])
    return outcome


def _shift_vanishes(value: ir.Value) -> bool:
    """Whether adding a number to a channel of a value changes no output of the graph."""
    waiting, seen = [value], set()
    while waiting:
        value = waiting.pop()
        if value in seen:
            continue
        seen.add(value)
        if value.is_graph_output():
            return False
        for use in value.uses():
            node = use.node
            if node.domain:
                return False
            if node.op_type == "InstanceNormalization" and use.idx == 0:
                continue
            same = known_shape(value) is not None and known_shape(value) == known_shape(node.outputs[0])
            passes_on = node.op_type == "Identity" or (node.op_type in ("Add", "Sub") and same)
            if not passes_on and not (use.idx == 0 and repeats(node) is not None):
                return False
            waiting.append(node.outputs[0])
    return True


PASS = Pass("drop-shift", "biases that instance normalisation takes away again", apply)
