"""Parts of a graph as graphs of their own."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence

import onnx_ir as ir

from ...errors import GraphError
from ..feeds import Feeds
from ..model import clean, constant, static_shape
from .candidates import downstream
from .running import opened


def between(model: ir.Model, inputs: Sequence[str], outputs: Sequence[str]) -> ir.Model:
    """A copy of what makes these outputs from these inputs; values keep their names.

    The outputs depend on nothing else but on the graph's own inputs, which are left out where nothing reads them.
    """
    made = model.clone()
    graph = made.graph
    values = {value.name: value for value in (*graph.inputs, *(v for node in graph for v in node.outputs))}
    graph.outputs.clear()
    graph.outputs.extend(values[name] for name in outputs)
    given = []
    for name in inputs:
        old = values[name]
        new = ir.Value(name=name, type=old.type, shape=old.shape)
        old.replace_all_uses_with(new)
        old.name = f"{name}_before"
        given.append(new)
    clean(made)
    read = [value for value in graph.inputs if value.uses()]
    graph.inputs.clear()
    graph.inputs.extend([*given, *read])
    return made


def tail(model: ir.Model, nodes: Collection[ir.Node]) -> ir.Model:
    """What the nodes reach, themselves included: what is before it needs to run only once.

    Its inputs are the values that come from before; outputs that the nodes do not reach are left out.
    """
    inside = downstream(nodes) | set(nodes)
    read = [value for node in model.graph if node in inside for value in node.inputs if value is not None]
    before = [value for value in dict.fromkeys(read) if value.producer() not in inside and constant(value) is None]
    outputs = [value for value in model.graph.outputs if value.producer() in inside]
    return between(model, [str(value.name) for value in before], [str(value.name) for value in outputs])


def inputs_of_tail(model: ir.Model, part: ir.Model, feeds: Iterable[Feeds], threads: int) -> list[Feeds]:
    """What `part`, cut from `model` by `tail`, gets when the model is run on each of the inputs.

    Raises:
        GraphError: inputs are missing or of another size. ModelError: the graph does not run.
    """
    names = [str(value.name) for value in part.graph.inputs]
    frames = [_shaped(model, frame) for frame in feeds]
    given = {str(value.name) for value in model.graph.inputs}
    wanted = [name for name in names if name not in given]
    made: list[Feeds] = [{name: frame[name] for name in names if name in given} for frame in frames]
    if wanted:
        head = between(model, [], wanted)
        read = [str(value.name) for value in head.graph.inputs]
        with opened(head, threads) as runner:
            for frame, found in zip(frames, made, strict=True):
                found.update(runner.run({name: frame[name] for name in read}))
    return made


def _shaped(model: ir.Model, frame: Feeds) -> Feeds:
    """Inputs under the shapes that the graph holds, which lowering may have merged."""
    made: Feeds = {}
    for value in model.graph.inputs:
        name, shape = str(value.name), static_shape(value)
        if name not in frame or frame[name].size != math.prod(shape):
            found = f"of shape {frame[name].shape}" if name in frame else "missing"
            raise GraphError(f"calibration: the input {name} takes {shape} and is {found}; give one that fits")
        made[name] = frame[name].reshape(shape)
    return made
