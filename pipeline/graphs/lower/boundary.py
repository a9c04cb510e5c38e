"""A lowered graph under the shapes that its inputs and outputs had."""

from __future__ import annotations

import json

import onnx_ir as ir

from ..model import static_shape
from .editing import Editor
from .rank import SHAPES_KEY


def restore_boundary(model: ir.Model) -> None:
    """Give inputs and outputs the shapes they had before `flatten_boundary`, each with a Reshape beside it; in place.

    For a runtime that takes any rank: a Reshape copies nothing there, and whoever runs the graph need not know.
    """
    shapes: dict[str, list[int]] = json.loads(model.metadata_props.pop(SHAPES_KEY, "{}"))
    first = next(iter(model.graph), None)
    for value in model.graph.inputs:
        if value.name not in shapes or first is None:
            continue
        flat, uses = static_shape(value), list(value.uses())
        value.shape = ir.Shape(shapes[value.name])
        again = Editor(model, before=first).reshape(value, flat)
        for node, index in uses:
            node.replace_input_with(index, again)
    for index, value in enumerate(model.graph.outputs):
        if value.name not in shapes:
            continue
        end = ir.node("Identity", [value], num_outputs=1)
        model.graph.append(end)
        shaped = Editor(model, before=end).reshape(value, shapes[value.name])
        name, value.name = value.name, f"{value.name}_flat"
        shaped.name = name
        model.graph.outputs[index] = shaped
        model.graph.remove(end, safe=True)


def only_reshaped(value: ir.Value) -> bool:
    """Whether a value of the boundary is there in another shape alone."""
    maker, uses = value.producer(), list(value.uses())
    if maker is None:
        return bool(uses) and all(use.node.op_type == "Reshape" and use.idx == 0 for use in uses)
    return value.is_graph_output() and not uses and maker.op_type == "Reshape"
