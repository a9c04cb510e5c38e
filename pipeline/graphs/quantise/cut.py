"""Parts of a graph as graphs of their own."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

import onnx_ir as ir

from ..feeds import Feeds
from ..model import clean, constant
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
    """What `part`, cut from `model` by `tail`, gets when the model is run on each of the inputs."""
    names = [str(value.name) for value in part.graph.inputs]
    given = {str(value.name) for value in model.graph.inputs}
    head = between(model, [], [name for name in names if name not in given])
    made = []
    with opened(model, threads) as whole, opened(head, threads) as runner:
        for frame in feeds:
            arrays = whole.feeds([frame])
            found = runner.run({name: arrays[name] for name in runner.shapes}) if runner.names else {}
            made.append(found | {name: arrays[name] for name in names if name in given})
    return made
