"""The walk that takes every value above rank 4 out of a graph, one operator's rule at a time.

A rule says how one operator is done on `Packed` tensors. Each rule is a pass of its own: where an operator has
none, its inputs are unpacked again, so that any set of rules leaves a valid graph.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence

import onnx_ir as ir

from ...errors import GraphError
from ..model import describe, static_shape
from ..shapes import known_shape
from .editing import Editor
from .packing import MAX_RANK, Groups, Packed, plain, repack, row_major
from .passes import CannotLowerError, Outcome, Pass

Rule = Callable[["Walk", ir.Node], Sequence[Packed]]
"""Outputs of a node, in order, made by the walk's editor. May raise CannotLowerError before it changed anything."""

SHAPES_KEY = "talkreel.shapes"
"""Metadata of a lowered graph: the shapes its inputs and outputs had, JSON, by name. The runtime reshapes."""


class Walk:
    """One walk over a model's nodes with some rules; see `rank_pass`. `whole`: with all there are."""

    def __init__(self, model: ir.Model, rules: Mapping[str, Rule], *, whole: bool = False) -> None:
        self.model = model
        self.whole = whole
        self.rules = rules
        self.held: dict[ir.Value, Packed] = {}
        self.views: dict[ir.Value, Packed] = {}
        self.outcome = Outcome()
        self.editor: Editor

    def run(self) -> Outcome:
        """Do it, in place; what was rewritten and what was left."""
        for node in list(self.model.graph):
            if self._concerns(node):
                self._visit(node)
        self._unpack_outputs()
        return self.outcome

    def get(self, value: ir.Value | None) -> Packed:
        """A node's input, as it is held.

        Raises:
            CannotLowerError: the input is absent or its shape is not known.
        """
        if value is None:
            raise CannotLowerError("an input is absent")
        if value in self.held:
            return self.held[value]
        shape = known_shape(value)
        if shape is None:
            raise CannotLowerError(f"the shape of {value.name} is not known")
        if len(shape) <= MAX_RANK:
            return plain(value, shape)
        if value not in self.views:
            self.views[value] = repack(self.editor, plain(value, shape), row_major(shape))
        return self.views[value]

    def packed(self, value: ir.Value | Packed | None, groups: Groups) -> Packed:
        """An input in the wanted groups."""
        held = value if isinstance(value, Packed) else self.get(value)
        return held if held.groups == groups else repack(self.editor, held, groups)

    def unpacked(self, packed: Packed) -> ir.Value:
        """The logical tensor itself, at its own rank."""
        value = packed.value
        if packed.groups != plain(value, packed.shape).groups:
            value = repack(self.editor, packed, row_major(packed.shape)).value
            value = self.editor.reshape(value, packed.shape)
        return value

    def _concerns(self, node: ir.Node) -> bool:
        values = [value for value in (*node.inputs, *node.outputs) if value is not None]
        if any(value in self.held for value in values):
            return True
        return any(value.shape is not None and len(value.shape) > MAX_RANK for value in values)

    def _visit(self, node: ir.Node) -> None:
        self.editor = Editor(self.model, before=node)
        rule = None if node.domain else self.rules.get(node.op_type)
        try:
            if rule is None:
                raise CannotLowerError("no rule for this operator")
            outputs = rule(self, node)
        except CannotLowerError as error:
            if rule is not None or self.whole:  # what a pass of a few operators does not mean to touch is no news
                self.outcome.left[describe(node)] = str(error)
            for index, value in enumerate(node.inputs):
                if value in self.held:
                    node.replace_input_with(index, self.unpacked(self.held[value]))
            return
        self.outcome.rewritten.append(describe(node))
        results = []
        for old, new in zip(node.outputs, outputs, strict=True):
            if static_shape(old) != new.shape:
                raise GraphError(f"{describe(node)}: {new.shape} instead of {static_shape(old)}; report this graph")
            high = len(new.shape) > MAX_RANK
            results.append(old if high else self.unpacked(new))
            if high:
                self.held[old] = new
        if not any(old in self.held for old in node.outputs):
            self.editor.replace(results)

    def _unpack_outputs(self) -> None:
        """Nodes whose outputs are held elsewhere go; a graph output among them is made again at its own rank."""
        for node in reversed(list(self.model.graph)):
            if not any(value in self.held for value in node.outputs):
                continue
            self.editor = Editor(self.model, before=node)
            results = []
            for value in node.outputs:
                needed = value.is_graph_output() or value.uses()
                results.append(self.unpacked(self.held[value]) if needed and value in self.held else value)
            if any(new is not old for new, old in zip(results, node.outputs, strict=True)):
                self.editor.replace(results)
            elif not any(value.uses() for value in node.outputs):
                self.model.graph.remove(node, safe=True)


def rank_pass(name: str, what: str, rules: Mapping[str, Rule]) -> Pass:
    """A pass of some rules."""
    return Pass(name, what, lambda model: Walk(model, rules).run())


def flatten_boundary(model: ir.Model) -> None:
    """Give the graph's own inputs and outputs rank 4 or less, leading axes merged; in place.

    Their data stay as they are in memory; the shapes they had are kept under `SHAPES_KEY`.
    """
    shapes: dict[str, list[int]] = json.loads(model.metadata_props.get(SHAPES_KEY, "{}"))
    first = next(iter(model.graph), None)
    for value in model.graph.inputs:
        shape = static_shape(value)
        if len(shape) <= MAX_RANK or first is None:
            continue
        shapes[str(value.name)] = list(shape)
        uses = list(value.uses())
        value.shape = ir.Shape(flat_shape(shape))
        again = Editor(model, before=first).reshape(value, shape)
        for node, index in uses:
            node.replace_input_with(index, again)
    for value in list(model.graph.outputs):
        shape, maker = static_shape(value), value.producer()
        if len(shape) <= MAX_RANK or maker is None:
            continue
        shapes[str(value.name)] = list(shape)
        after = ir.node("Identity", [value], num_outputs=1)
        model.graph.insert_after(maker, after)
        flat = Editor(model, before=after).reshape(value, flat_shape(shape))
        name, value.name = value.name, f"{value.name}_was"
        flat.name = name
        model.graph.outputs[model.graph.outputs.index(value)] = flat
        model.graph.remove(after, safe=True)
    if shapes:
        model.metadata_props[SHAPES_KEY] = json.dumps(shapes, sort_keys=True)


def flat_shape(shape: Sequence[int]) -> list[int]:
    """A shape with its leading axes merged down to rank 4."""
    extra = max(0, len(shape) - MAX_RANK)
    merged = 1
    for length in shape[: extra + 1]:
        merged *= length
    return [merged, *shape[extra + 1 :]]
