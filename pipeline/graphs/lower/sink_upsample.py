"""Nearest upsampling done later: what treats all pixels alike is done before it, on fewer pixels.

Functions of one element, numbers for each channel, 1x1 convolutions and normalisations whose statistics are equal
for repeated pixels (each is counted equally often) commute with it. A Resize to the same size is dropped.
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from ..model import attribute, constant, describe
from .editing import Editor
from .nearest import repeats
from .passes import Outcome, Pass
from .upsample import UNARY

NORMALISATIONS = frozenset({"InstanceNormalization", "BatchNormalization", "GroupNormalization"})
BINARY = frozenset({"Add", "Sub", "Mul", "Div", "Max", "Min", "Pow", "PRelu"})


def commutes(node: ir.Node, value: ir.Value) -> bool:
    """Whether a node does the same before as after pixels of its input `value` are repeated."""
    others = [other for other in node.inputs if other is not None and other is not value]
    if node.domain or len(node.outputs) != 1 or any(constant(other) is None for other in others):
        return False
    if node.op_type in UNARY:
        return node.inputs[0] is value
    if node.op_type in NORMALISATIONS:
        return node.inputs[0] is value and not attribute(node, "training_mode", 0)
    if node.op_type in BINARY:
        shapes = [tuple(other.shape or ()) for other in others]
        return len(node.inputs) == 2 and all(len(shape) <= 4 and set(shape[-2:]) <= {1} for shape in shapes)
    if node.op_type == "Conv":
        kernel = tuple(others[0].shape or ())[2:] if others else ()
        still = {*_numbers(node, "strides", 1)} == {1} and not any(_numbers(node, "pads", 0))
        return node.inputs[0] is value and kernel == (1, 1) and still
    return False


def _numbers(node: ir.Node, name: str, default: int) -> list[int]:
    return [int(n) for n in attribute(node, name, [default])]


def sink(model: ir.Model, resize: ir.Node, factors: tuple[int, int]) -> ir.Node | None:
    """Exchange an upsampling with its only reader, if they commute: the new upsampling."""
    (value,), (source, *_) = resize.outputs, resize.inputs
    readers = {use.node for use in value.uses()}
    if value.is_graph_output() or len(readers) != 1 or source is None:
        return None
    (reader,) = readers
    if not commutes(reader, value):
        return None
    editor = Editor(model, reader)
    inputs = [source if other is value else other for other in reader.inputs]
    small = editor.op(reader.op_type, *inputs, **{name: attr.value for name, attr in reader.attributes.items()})
    scales = editor.const(np.array([1, 1, *factors], np.float32))
    large = editor.op(
        "Resize",
        small,
        None,
        scales,
        mode="nearest",
        coordinate_transformation_mode="asymmetric",
        nearest_mode="floor",
    )
    editor.replace([large])
    model.graph.remove(resize, safe=True)
    return large.producer()


def apply(model: ir.Model) -> Outcome:
    """Move every nearest upsampling down while its only reader commutes with it."""
    outcome = Outcome()
    for node in list(model.graph):
        factors = repeats(node)
        if factors == (1, 1) and node.inputs[0] is not None:
            outcome.rewritten.append(describe(node))
            Editor(model, node).replace([node.inputs[0]])
        elif factors is not None:
            name, lowest = describe(node), sink(model, node, factors)
            outcome.rewritten += [name] if lowest else []
            while lowest is not None:
                lowest = sink(model, lowest, factors)
    return outcome


PASS = Pass("sink-upsample", "nearest upsampling done after what treats all pixels alike", apply)
