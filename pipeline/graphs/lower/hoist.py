"""Hoisting out of a loop: a graph becomes a prologue, run once, and a step, run on every turn."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import onnx_ir as ir

from ...errors import GraphError
from ..costs import VIEWS, node_cost, value_bytes
from ..model import clean, name_of

CARRIED_WEIGHT = 2
"""How much a carried byte counts against one that is computed anew on every turn: it is held through the whole loop,
and read from memory that other nodes have pushed out of the cache."""

_Vertex = tuple[str, int]
_INFINITE = 1 << 62


def split(model: ir.Model, loop_inputs: Sequence[str]) -> tuple[ir.Model, ir.Model]:
    """Divide a prepared graph by what depends on a loop's inputs.

    The prologue takes the other inputs and gives the values that cross over. The step takes the loop's inputs, what
    crosses, and those other inputs that it reads itself; it gives the graph's outputs. An output that does not
    depend on the loop is an output of the prologue alone. Nodes that only move or map elements are computed anew in
    the step where fewer bytes cross that way (a minimum cut; see `CARRIED_WEIGHT`).

    Args:
        model: not changed.
        loop_inputs: names of the inputs that change on every turn.

    Raises:
        GraphError: no such input, no node that could be hoisted, or no output that depends on the loop.
    """
    invariant = set(invariant_nodes(model, loop_inputs))
    outputs = list(model.graph.outputs)
    steady = {v for v in outputs if _is_steady(v, invariant, loop_inputs)}
    if not any(node_cost(node).bytes for node in invariant):
        raise GraphError(f"nothing in {name_of(model)} can leave the loop over {', '.join(loop_inputs)}")
    if len(steady) == len(outputs):
        raise GraphError(f"no output of {name_of(model)} depends on {', '.join(loop_inputs)}; run it once instead")
    again = _recomputed(model, invariant)
    kept = {node for node in model.graph if node not in invariant or node in again}
    crossing = _crossing(model, kept)
    names = [value.name or "" for value in crossing]
    held = [value.name or "" for value in outputs if value in steady]
    prologue, step = model.clone(), model.clone()
    _restrict(prologue, names=[*names, *(n for n in held if n not in names)], cut=set())
    _restrict(step, names=[v.name or "" for v in outputs if v not in steady], cut=set(names))
    return prologue, step


def invariant_nodes(model: ir.Model, loop_inputs: Sequence[str]) -> list[ir.Node]:
    """Nodes that depend on none of the given inputs, in the graph's order; those that hold subgraphs are left out.

    Raises:
        GraphError: no such input.
    """
    inputs = {value.name: value for value in model.graph.inputs}
    missing = [name for name in loop_inputs if name not in inputs]
    if missing or not loop_inputs:
        known = ", ".join(str(name) for name in inputs)
        raise GraphError(f"{name_of(model)} has no input {', '.join(missing) or '(none given)'}; it has {known}")
    changing = {inputs[name] for name in loop_inputs}
    found = []
    for node in model.graph:
        holds_graph = any(a.type in (ir.AttributeType.GRAPH, ir.AttributeType.GRAPHS) for a in node.attributes.values())
        if holds_graph or any(value in changing for value in node.inputs if value is not None):
            changing.update(node.outputs)
        else:
            found.append(node)
    return found


def _is_steady(value: ir.Value, invariant: set[ir.Node], loop_inputs: Sequence[str]) -> bool:
    producer = value.producer()
    return value.name not in loop_inputs if producer is None else producer in invariant


def _crossing(model: ir.Model, kept: set[ir.Node]) -> list[ir.Value]:
    """Values made outside the step that a node of the step reads, in the order in which they are made."""
    read = {value for node in kept for value in node.inputs if value is not None}
    return [v for node in model.graph if node not in kept for v in node.outputs if v in read]


def _recomputed(model: ir.Model, invariant: set[ir.Node]) -> set[ir.Node]:
    """Invariant nodes that the step computes anew: those on the step's side of the minimum cut."""
    flow = _Flow()
    source, sink = ("source", 0), ("sink", 0)
    for node in model.graph:
        here = ("node", id(node))
        if node not in invariant:
            flow.edge(here, sink, _INFINITE)
        else:
            flow.edge(source, here, _cost(node))
        for value in node.inputs:
            if value is None or value.is_initializer():
                continue
            producer = value.producer()
            if producer is None:
                # An input of the graph is there in any case: the step may read it for its bytes alone.
                flow.edge(source, ("value", id(value)), value_bytes(value) or 0)
            elif producer in invariant:
                flow.edge(("node", id(producer)), ("value", id(value)), CARRIED_WEIGHT * (value_bytes(value) or 1))
            flow.edge(("value", id(value)), here, _INFINITE)
    ahead = flow.reachable(source, sink)
    return {node for node in invariant if ("node", id(node)) not in ahead}


def _cost(node: ir.Node) -> int:
    """Bytes written when a node is computed anew; without bound when it does more than move or map elements."""
    cost, written = node_cost(node), [value_bytes(value) for value in node.outputs if value.name]
    if cost.flops is None or cost.bytes is None or any(size is None for size in written):
        return _INFINITE
    if node.op_type in VIEWS:
        return 0
    total = sum(size or 0 for size in written)
    elements = sum(
        (value_bytes(v) or 0) // max(1, round(v.dtype.itemsize)) for v in node.outputs if v.dtype is not None
    )
    return total if cost.flops <= elements else _INFINITE


class _Flow:
    """Maximum flow by shortest augmenting paths (Edmonds and Karp)."""

    def __init__(self) -> None:
        self._room: dict[_Vertex, dict[_Vertex, int]] = {}

    def edge(self, a: _Vertex, b: _Vertex, room: int) -> None:
        """Add an edge; one that is there already keeps the larger room."""
        there = self._room.setdefault(a, {})
        there[b] = max(there.get(b, 0), room)
        self._room.setdefault(b, {}).setdefault(a, 0)

    def reachable(self, source: _Vertex, sink: _Vertex) -> set[_Vertex]:
        """Vertices on the source's side of a minimum cut."""
        while True:
            before: dict[_Vertex, _Vertex] = {source: source}
            queue = deque([source])
            while queue and sink not in before:
                at = queue.popleft()
                for to, room in self._room.get(at, {}).items():
                    if room > 0 and to not in before:
                        before[to] = at
                        queue.append(to)
            if sink not in before:
                return set(before)
            path, at = [], sink
            while at != source:
                path.append((before[at], at))
                at = before[at]
            pushed = min(self._room[a][b] for a, b in path)
            for a, b in path:
                self._room[a][b] -= pushed
                self._room[b][a] += pushed


def _restrict(model: ir.Model, names: Sequence[str], cut: set[str]) -> None:
    """Keep what the named outputs need; the values of `cut` become inputs. In place."""
    graph = model.graph
    values = {value.name: value for node in graph for value in node.outputs}
    values.update({value.name: value for value in graph.inputs})
    graph.outputs.clear()
    graph.outputs.extend(values[name] for name in names)
    for name in sorted(cut):
        old = values[name]
        new = ir.Value(name=name, shape=old.shape, type=old.type)
        old.name = f"{name}_made"
        old.replace_all_uses_with(new)
        graph.inputs.append(new)
    clean(model)
    used = set(graph.outputs) | {value for node in graph for value in node.inputs if value is not None}
    for value in [value for value in graph.inputs if value not in used]:
        graph.inputs.remove(value)
