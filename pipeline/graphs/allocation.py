"""Which buffers ONNX Runtime makes for a graph's values on the CPU, and how its arena places them."""

from __future__ import annotations

from dataclasses import dataclass, field

import onnx_ir as ir

from .arena import Buffer
from .costs import VIEWS, value_bytes
from .plan import IN_PLACE
from .shapes import known_shape


@dataclass
class _Chain:
    """A buffer, and the uses of the values in it that are still to come."""

    value: ir.Value
    first: int
    last: int
    uses: int = 0


@dataclass
class Allocation:
    """Buffers of values inside the graph, which ONNX Runtime plans, and of its outputs, which it does not."""

    inner: list[Buffer] = field(default_factory=list)
    outputs: list[Buffer] = field(default_factory=list)


def allocate(model: ir.Model, *, reuse: bool = True) -> Allocation:
    """ONNX Runtime's allocation plan for one stream (allocation_planner.cc), nodes in the order in which they run.

    A view shares its source's buffer; an element-wise operator of one input writes over that input after its last
    use; else a value takes the buffer freed last whose value had the same shape and type, which then stays
    allocated in between; else it gets one of its own. Without `reuse` only the first two hold.
    """
    outputs = set(model.graph.outputs)
    pending: dict[ir.Value, int] = {}
    for node in model.graph:
        for value in node.inputs:
            if value is not None:
                pending[value] = pending.get(value, 0) + 1
    chains: dict[ir.Value, _Chain] = {}
    free: list[_Chain] = []
    made: list[_Chain] = []
    for step, node in enumerate(model.graph):
        for value in node.outputs:
            if not value.name:
                continue
            chain = None if value in outputs else _taken(node, value, chains, free, reuse)
            if chain is None:
                if node.op_type in VIEWS and node.domain == "" and value not in outputs:
                    continue  # a view of an input or a constant
                chain = _Chain(value, step, step)
                made.append(chain)
            chains[value] = chain
            chain.last = step
            chain.uses += pending.get(value, 0)
        for value in node.inputs:
            chain = None if value is None else chains.get(value)
            if chain is not None:
                chain.last = step
                chain.uses -= 1
                if chain.uses == 0 and chain.value not in outputs:
                    free.insert(0, chain)
    found, end = Allocation(), len(model.graph) - 1
    for chain in made:
        is_output = chain.value in outputs
        size = value_bytes(chain.value) or 0
        buffer = Buffer(chain.value.name or "", size, chain.first, end if is_output else chain.last)
        if size:
            (found.outputs if is_output else found.inner).append(buffer)
    return found


def _taken(
    node: ir.Node, value: ir.Value, chains: dict[ir.Value, _Chain], free: list[_Chain], reuse: bool
) -> _Chain | None:
    if node.op_type in VIEWS and node.domain == "":
        return None if node.inputs[0] is None else chains.get(node.inputs[0])
    if node.op_type in IN_PLACE:
        source = node.inputs[0]
        chain = None if source is None else chains.get(source)
        if source is not None and chain is not None and chain.uses == 1 and _alike(source, value):
            return chain
    for place, chain in enumerate(free):
        if reuse and _alike(chain.value, value):
            return free.pop(place)
    return None


def _alike(a: ir.Value, b: ir.Value) -> bool:
    return known_shape(a) == known_shape(b) and a.dtype == b.dtype
