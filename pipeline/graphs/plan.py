"""Memory planning of a graph: how long each value lives, and how small a block can hold them all."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import onnx_ir as ir

from ..errors import GraphError
from .arena import Buffer, Placement, alive, by_size, by_time, lower_bound, picture, search, total
from .bounds import bound_shapes
from .costs import VIEWS, value_bytes
from .model import name_of, prepare
from .order import run_order
from .shapes import known_shape

# Operators whose CPU kernel ONNX Runtime lets write over an input of the same shape that nothing needs afterwards
# (seen in the profile of 1.32: those of one input; Add, Mul and their like do not).
IN_PLACE = frozenset(
    {
        *("Abs", "Cast", "Ceil", "Clip", "Elu", "Erf", "Exp", "Floor", "HardSigmoid", "LeakyRelu", "Log", "Neg", "Not"),
        *(
            "QuickGelu",
            "Reciprocal",
            "Relu",
            "Round",
            "Selu",
            "Sigmoid",
            "Sign",
            "Softplus",
            "Softsign",
            "Sqrt",
            "Tanh",
        ),
        "ThresholdedRelu",
    }
)


@dataclass(frozen=True)
class Plan:
    """Buffers of a graph's values, without its inputs and constants, and how many bytes they take."""

    buffers: tuple[Buffer, ...]
    steps: tuple[str, ...]
    """The node of each step."""
    without_reuse: int
    """Bytes when every value has a buffer of its own for good: the baseline."""
    bound: int
    """The most bytes alive at once."""
    by_time: Placement
    by_size: Placement
    best: Placement

    @property
    def peak_step(self) -> int:
        """The step with the most bytes alive."""
        bytes_alive = alive(self.buffers)
        return bytes_alive.index(max(bytes_alive)) if bytes_alive else 0

    def to_json(self) -> dict[str, Any]:
        """Bytes, and each buffer with its place in the best arrangement."""
        return {
            "without_reuse": self.without_reuse,
            "sum": total(self.buffers),
            "lower_bound": self.bound,
            "first_fit_by_time": self.by_time.peak,
            "first_fit_by_size": self.by_size.peak,
            "search": self.best.peak,
            "peak_node": self.steps[self.peak_step] if self.steps else None,
            "buffers": [
                {"name": b.name, "bytes": b.size, "first": b.first, "last": b.last, "offset": offset}
                for b, offset in zip(self.best.buffers, self.best.offsets, strict=True)
            ],
        }

    def text(self) -> str:
        """The figures, and the best arrangement as a picture."""
        rows = {
            "reuse off": self.without_reuse,
            "written over in place": total(self.buffers),
            "arena, first-fit by time": self.by_time.peak,
            "arena, first-fit by size": self.by_size.peak,
            "arena, search": self.best.peak,
            "most alive at once": self.bound,
        }
        lines = [f"{label:26}{size / 2**20:10.2f} MiB" for label, size in rows.items()]
        if self.steps:
            lines.append(f"{'at':26}{self.steps[self.peak_step]:>14}")
        return "\n".join([*lines, "", picture(self.best)])


def plan(model: ir.Model, maximum: Mapping[str, int] | None = None, *, in_place: bool = True, seed: int = 0) -> Plan:
    """Plan the memory of a graph that is run in ONNX Runtime's order.

    Args:
        model: not changed.
        maximum: greatest length of each named dimension of the inputs; the plan then holds for all shorter ones.
        in_place: let elementwise operators write over their input, as ONNX Runtime does.
        seed: of the search.

    Raises:
        GraphError: a shape is not known, or a dimension has no maximum.
    """
    if any(known_shape(value) is None for node in model.graph for value in node.outputs if value.name):
        model = bound_shapes(prepare(model.clone(), maximum))
    buffers = tuple(lifetimes(model, in_place=in_place))
    return Plan(
        buffers=buffers,
        steps=tuple(node.name or node.op_type for node in run_order(model.graph)),
        without_reuse=total(lifetimes(model, in_place=False)),
        bound=lower_bound(buffers),
        by_time=by_time(buffers),
        by_size=by_size(buffers),
        best=search(buffers, seed=seed),
    )


def lifetimes(model: ir.Model, *, in_place: bool = True) -> list[Buffer]:
    """A buffer for each value that a node makes; a view shares its source's, and so does what is written in place.

    Graph outputs live to the end; a value that a subgraph reads lives until the node that holds it.

    Raises:
        GraphError: a shape is not known.
    """
    nodes = run_order(model.graph)
    last = _last_uses(model, nodes)
    shared: dict[ir.Value, ir.Value] = {}  # a value in another's buffer
    holds: dict[ir.Value, tuple[int, int, int]] = {}  # bytes, first and last step of each buffer
    for step, node in enumerate(nodes):
        for value in node.outputs:
            if not value.name and not value.uses():
                continue
            ends = max(step, last.get(value, step))
            source = _source(node, step, last, shared, holds, in_place)
            if source is not None:
                shared[value] = source
                if source in holds:
                    size, first, end = holds[source]
                    holds[source] = (size, first, max(end, ends))
            else:
                holds[value] = (_bytes(value, model), step, ends)
    return [Buffer(value.name or "", *facts) for value, facts in holds.items() if facts[0]]


def _last_uses(model: ir.Model, nodes: list[ir.Node]) -> dict[ir.Value, int]:
    last: dict[ir.Value, int] = {}
    for step, node in enumerate(nodes):
        for value in node.inputs:
            if value is not None:
                last[value] = step
        for attribute in node.attributes.values():
            if attribute.type in (ir.AttributeType.GRAPH, ir.AttributeType.GRAPHS):
                one = attribute.type == ir.AttributeType.GRAPH
                for body in [attribute.as_graph()] if one else attribute.as_graphs():
                    for inner in ir.traversal.RecursiveGraphIterator(body):
                        last.update({used: step for used in inner.inputs if used is not None})
    last.update({value: len(nodes) - 1 for value in model.graph.outputs})
    return last


def _source(
    node: ir.Node,
    step: int,
    last: Mapping[ir.Value, int],
    shared: Mapping[ir.Value, ir.Value],
    holds: Mapping[ir.Value, tuple[int, int, int]],
    in_place: bool,
) -> ir.Value | None:
    """The value whose buffer the node's output takes, or None for one of its own."""
    if node.domain == "" and node.op_type in VIEWS and node.inputs[0] is not None:
        under = shared.get(node.inputs[0], node.inputs[0])
        # A view of an input or a constant stays there; as an output of the graph it is copied.
        return under if under in holds or not node.outputs[0].is_graph_output() else None
    if not in_place or node.domain not in ("", "com.microsoft"):
        return None
    value = node.inputs[0] if node.op_type in IN_PLACE else None
    root = shared.get(value, value) if value is not None else None
    if value is None or root is None or root not in holds or value.is_graph_output():
        return None
    same = known_shape(value) == known_shape(node.outputs[0]) and value.dtype == node.outputs[0].dtype
    return root if same and holds[root][2] == step and last[value] == step else None


def _bytes(value: ir.Value, model: ir.Model) -> int:
    size = value_bytes(value)
    if size is None:
        raise GraphError(
            f"the shape of {value.name} in {name_of(model)} is not known; "
            "infer it, or give the greatest length of each dimension"
        )
    return size
