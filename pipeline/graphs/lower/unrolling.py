"""Several frames in one run: a graph's nodes once a frame, after what all frames share.

Each frame is computed by the very nodes, and in the memory, of a run of one frame; weights and whatever does not depend
on the frame (an appearance feature, say) are there once. On a CPU that is faster than a batch axis, whose values leave
the caches.
"""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from ...errors import GraphError
from ..model import static_shape
from .editing import Editor
from .passes import Outcome, Pass


def unroll_pass(count: int, inputs: Sequence[str]) -> Pass:
    """A pass that gives the named inputs `count` frames, joined to their first axis, and the outputs likewise. For
    graphs that are lowered already: each frame gets nodes of its own.

    Raises (when applied):
        GraphError: an input that is not there, or an input or output without an axis to join frames to.
    """
    what = f"{count} frames of {', '.join(inputs)} in one run, one after another"
    return Pass("unroll", what, lambda model: _unroll(model, count, inputs))


def _unroll(model: ir.Model, count: int, inputs: Sequence[str]) -> Outcome:
    graph, nodes = model.graph, list(model.graph)
    given = {str(value.name): value for value in graph.inputs}
    if missing := [name for name in inputs if name not in given]:
        raise GraphError(f"no input {', '.join(missing)} to batch; the graph has {', '.join(sorted(given))}")
    varying: set[ir.Value] = {given[name] for name in inputs}
    repeated = []
    for node in nodes:
        if any(value in varying for value in node.inputs):
            repeated.append(node)
            varying.update(node.outputs)
    frames: list[dict[ir.Value, ir.Value]] = [{} for _ in range(count)]
    for name in inputs:
        for frame, piece in zip(frames, _pieces(model, given[name], count, nodes[0]), strict=True):
            frame[given[name]] = piece
    for index, frame in enumerate(frames[1:], 1):
        for node in repeated:
            _copy(graph, node, frame, index)
    for node in repeated:  # the nodes themselves are the first frame's, once all copies are made
        for place, value in enumerate(node.inputs):
            if value in frames[0]:
                node.replace_input_with(place, frames[0][value])
    for place, value in enumerate(list(graph.outputs)):
        if value in varying:
            graph.outputs[place] = _joined(model, value, [frame.get(value, value) for frame in frames])
    return Outcome(rewritten=[f"{len(repeated)} of {len(nodes)} nodes, {count} times"])


def _shape(value: ir.Value, count: int) -> list[int]:
    shape = static_shape(value)
    if not shape:
        raise GraphError(f"{value.name} has no axis to join {count} frames to; give it one of length 1")
    return [count * shape[0], *shape[1:]]


def _pieces(model: ir.Model, value: ir.Value, count: int, first: ir.Node) -> Sequence[ir.Value]:
    """Each frame's part of a batched input."""
    shape = _shape(value, count)
    length, value.shape = shape[0] // count, ir.Shape(shape)
    editor = Editor(model, before=first)
    return editor.ops("Split", count, value, editor.const([length] * count), axis=0)


def _copy(graph: ir.Graph, node: ir.Node, frame: dict[ir.Value, ir.Value], index: int) -> None:
    """The node for another frame, whose values are added to `frame`."""
    made = ir.Node(
        node.domain,
        node.op_type,
        [frame.get(value, value) if value is not None else None for value in node.inputs],
        list(node.attributes.values()),
        outputs=[
            ir.Value(name=f"{value.name}/frame{index}", type=value.type, shape=value.shape) for value in node.outputs
        ],
        name=f"{node.outputs[0].name}/frame{index}",
    )
    graph.append(made)
    frame.update(zip(node.outputs, made.outputs, strict=True))


def _named(value: ir.Value, name: str) -> ir.Value:
    """Another value of the same kind."""
    return ir.Value(name=name, type=value.type, shape=value.shape)


def _joined(model: ir.Model, value: ir.Value, parts: Sequence[ir.Value]) -> ir.Value:
    """All frames' parts of an output, under its name."""
    shape = _shape(value, len(parts))
    name, value.name = value.name, f"{value.name}/frame0"
    made = ir.Value(name=name, type=value.type, shape=ir.Shape(shape))
    model.graph.append(
        ir.Node("", "Concat", list(parts), [ir.AttrInt64("axis", 0)], outputs=[made], name=f"{name}/frames")
    )
    return made
