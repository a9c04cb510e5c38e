"""What a graph holds: operators by rank, tensors above rank 4, cost by node, what targets lack, what a loop repeats."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import onnx_ir as ir
from onnx_ir.passes.common import ShapeInferencePass
from rich.console import Console, Group
from rich.table import Table

from ..errors import GraphError
from .costs import node_cost, parameters
from .lower.hoist import invariant_nodes
from .model import name_of
from .shapes import infer_shapes
from .targets import target, target_names

HIGHEST_PLAIN_RANK = 4


@dataclass(frozen=True)
class NodeAudit:
    """One node. `flops` and `bytes` are None where they cannot be told; `rank` is that of its widest tensor."""

    name: str
    operator: str
    rank: int | None
    flops: int | None
    bytes: int | None
    depth: int
    """0 in the graph itself, 1 in a subgraph of it, and so on; what a subgraph does is counted once."""


@dataclass(frozen=True)
class Invariant:
    """The part of a graph that is the same on every turn of a loop over some of its inputs."""

    loop_inputs: tuple[str, ...]
    nodes: tuple[str, ...]
    flops: int


@dataclass(frozen=True)
class Audit:
    """The audit of one graph."""

    name: str
    opset: int
    nodes: tuple[NodeAudit, ...]
    parameters: int
    above_rank_4: dict[str, tuple[int | str, ...]]
    """Tensors and their shapes, inputs and constants included."""
    lacking: dict[str, dict[str, str]]
    """By target: nodes it cannot run itself, and why."""
    invariant: Invariant | None

    @property
    def flops(self) -> int:
        """Floating-point operations of all nodes that are known."""
        return sum(node.flops or 0 for node in self.nodes)

    @property
    def bytes(self) -> int:
        """Bytes moved by all nodes whose shapes are known."""
        return sum(node.bytes or 0 for node in self.nodes)

    @property
    def uncounted(self) -> list[str]:
        """Nodes whose operations are not in `flops`: of an unknown operator, or of unknown shape."""
        return [node.name for node in self.nodes if node.flops is None]

    @property
    def operators(self) -> dict[str, dict[str, int]]:
        """Nodes by operator and rank ("?" where it is not known), operators by name."""
        found: dict[str, Counter[str]] = {}
        for node in self.nodes:
            found.setdefault(node.operator, Counter())["?" if node.rank is None else str(node.rank)] += 1
        return {operator: dict(sorted(ranks.items())) for operator, ranks in sorted(found.items())}

    def to_json(self) -> dict[str, Any]:
        """All of it as plain values."""
        return {
            "name": self.name,
            "opset": self.opset,
            "nodes": len(self.nodes),
            "subgraph_nodes": sum(node.depth > 0 for node in self.nodes),
            "parameters": self.parameters,
            "flops": self.flops,
            "bytes": self.bytes,
            "uncounted": self.uncounted,
            "operators": self.operators,
            "above_rank_4": {name: list(shape) for name, shape in self.above_rank_4.items()},
            "lacking": self.lacking,
            "invariant": None
            if self.invariant is None
            else {
                "loop_inputs": list(self.invariant.loop_inputs),
                "nodes": list(self.invariant.nodes),
                "flops": self.invariant.flops,
            },
            "by_node": [
                {"name": n.name, "operator": n.operator, "rank": n.rank, "flops": n.flops, "bytes": n.bytes}
                for n in self.nodes
            ],
        }

    def table(self, top: int = 12) -> Group:
        """For a terminal: totals, operators by rank, the `top` nodes with the most operations, what targets lack."""
        totals = Table(title=f"{self.name or 'graph'}, operator set {self.opset}", show_header=False)
        totals.add_row("nodes", f"{len(self.nodes)} ({sum(n.depth > 0 for n in self.nodes)} in subgraphs)")
        totals.add_row("parameters", f"{self.parameters / 1e6:.2f} M")
        totals.add_row("operations", f"{self.flops / 1e9:.2f} GFLOP, {len(self.uncounted)} nodes not counted")
        totals.add_row("moved", f"{self.bytes / 1e6:.1f} MB")
        totals.add_row("tensors above rank 4", str(len(self.above_rank_4)))
        if self.invariant is not None:
            share = self.invariant.flops / self.flops if self.flops else 0.0
            totals.add_row("outside the loop", f"{len(self.invariant.nodes)} nodes, {share:.0%} of the operations")
        kinds = Table("operator", "nodes", "by rank")
        for operator, ranks in self.operators.items():
            kinds.add_row(operator, str(sum(ranks.values())), ", ".join(f"{r}-D {n}" for r, n in ranks.items()))
        heavy = Table("node", "operator", "GFLOP", "MB")
        for node in sorted(self.nodes, key=lambda node: -(node.flops or 0))[:top]:
            sizes = [f"{(node.flops or 0) / 1e9:.3f}", "?" if node.bytes is None else f"{node.bytes / 1e6:.1f}"]
            heavy.add_row(node.name, node.operator, *sizes)
        missing = Table("target", "holds for", "lacks")
        for name, nodes in self.lacking.items():
            reasons = Counter(f"{_operator(self.nodes, node)}: {why}" for node, why in nodes.items())
            missing.add_row(
                target(name).title,
                target(name).versions,
                "\n".join(f"{n} × {why}" for why, n in reasons.items()) or "nothing",
            )
        return Group(totals, kinds, heavy, missing)

    def text(self, top: int = 12, width: int = 100) -> str:
        """The table as plain text."""
        console = Console(file=io.StringIO(), width=width, color_system=None)
        console.print(self.table(top))
        assert isinstance(console.file, io.StringIO)
        return console.file.getvalue()


def audit(
    model: ir.Model, targets: Sequence[str] | None = None, loop_inputs: Sequence[str] = (), version: str | None = None
) -> Audit:
    """Audit a graph; it may hold subgraphs and unknown shapes. Shapes are inferred in place.

    Args:
        model: as loaded; `prepare` it first where constants should be folded away.
        targets: names in `targets.json`; all when not given.
        loop_inputs: inputs that change on every turn of a loop; all other inputs stay the same.
        version: of the target's runtime, with one target only; else the table's own.

    Raises:
        GraphError: no such target or input, or a version for several targets.
    """
    chosen = target_names() if targets is None else list(targets)
    if version is not None and len(chosen) != 1:
        raise GraphError(f"a version ({version}) for {len(chosen)} targets; give one target")
    if any(True for _ in model.graph.subgraphs()):
        ShapeInferencePass()(model)
    infer_shapes(model)
    opset = model.opset_imports.get("", 0)
    listed = [(node, depth, _name(node)) for node, depth in _walk(model.graph, 0)]
    lacking = {
        each: {name: why for node, _, name in listed if (why := target(each).lacks(node, opset, version)) is not None}
        for each in chosen
    }
    return Audit(
        name=name_of(model).removeprefix("the graph").strip(" '"),
        opset=opset,
        nodes=tuple(_node_audit(*entry) for entry in listed),
        parameters=parameters(model),
        above_rank_4=_high_ranks(model, [node for node, _, _ in listed]),
        lacking=lacking,
        invariant=_invariant(model, loop_inputs) if loop_inputs else None,
    )


def _walk(graph: ir.Graph, depth: int) -> Iterator[tuple[ir.Node, int]]:
    for node in graph:
        yield node, depth
        for attribute in node.attributes.values():
            if attribute.type == ir.AttributeType.GRAPH:
                yield from _walk(attribute.as_graph(), depth + 1)
            elif attribute.type == ir.AttributeType.GRAPHS:
                for body in attribute.as_graphs():
                    yield from _walk(body, depth + 1)


def _name(node: ir.Node) -> str:
    return node.name or next((value.name for value in node.outputs if value.name), node.op_type)


def _node_audit(node: ir.Node, depth: int, name: str) -> NodeAudit:
    shapes = [value.shape for value in (*node.inputs, *node.outputs) if value is not None and value.shape is not None]
    cost = node_cost(node)
    operator = f"{node.domain}.{node.op_type}" if node.domain else node.op_type
    return NodeAudit(name, operator, max((len(s) for s in shapes), default=None), cost.flops, cost.bytes, depth)


def _high_ranks(model: ir.Model, nodes: Sequence[ir.Node]) -> dict[str, tuple[int | str, ...]]:
    values = [*model.graph.inputs, *(v for node in nodes for v in (*node.inputs, *node.outputs) if v is not None)]
    return {
        value.name or "": tuple(size if isinstance(size, int) else str(size.value or "?") for size in value.shape)
        for value in values
        if value.shape is not None and len(value.shape) > HIGHEST_PLAIN_RANK
    }


def _invariant(model: ir.Model, loop_inputs: Sequence[str]) -> Invariant:
    nodes = invariant_nodes(model, loop_inputs)
    return Invariant(tuple(loop_inputs), tuple(_name(n) for n in nodes), sum(node_cost(n).flops or 0 for n in nodes))


def _operator(nodes: Sequence[NodeAudit], name: str) -> str:
    return next(node.operator for node in nodes if node.name == name)
