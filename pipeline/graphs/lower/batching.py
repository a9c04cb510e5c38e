"""Several frames in one run: a graph mapped over a new batch of some of its inputs.

The graph is kept a function of one frame for what the batch does not touch (an appearance feature, say), so
that such parts are still computed once. Every value that depends on a batched input gets the batch as a new
first axis; operators that have a batch axis of their own take both in one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np
import onnx_ir as ir

from ...errors import GraphError
from ..model import attribute, constant, describe, static_shape
from .editing import Editor
from .elementwise import BROADCAST, UNARY
from .passes import CannotLowerError, Outcome, Pass
from .reductions import REDUCTIONS

MERGED = [
    "AveragePool",
    "BatchNormalization",
    "Conv",
    "ConvTranspose",
    "DepthToSpace",
    "GlobalAveragePool",
    "GlobalMaxPool",
    "GridSample",
    "GroupNormalization",
    "InstanceNormalization",
    "LRN",
    "LpPool",
    "MaxPool",
    "Resize",
    "SpaceToDepth",
]
"""Operators whose first axis already is a batch: the new one joins it."""

ALONG = ("ArgMax", "ArgMin", "Concat", "Gather", "Hardmax", "LayerNormalization", "LogSoftmax", "Softmax", "Split")
"""Operators with one attribute `axis`."""


def batch_pass(count: int, inputs: Sequence[str]) -> Pass:
    """A pass that gives the named inputs `count` frames, joined to their first axis, and the outputs likewise.

    Raises (when applied):
        GraphError: an input that is not there, or an operator that cannot be mapped.
    """
    what = f"{count} frames of {', '.join(inputs)} in one run"
    return Pass("batch", what, lambda model: _Mapping(model, count, inputs).run())


class _Mapping:
    def __init__(self, model: ir.Model, count: int, inputs: Sequence[str]) -> None:
        known = {str(value.name) for value in model.graph.inputs}
        if missing := [name for name in inputs if name not in known]:
            raise GraphError(f"no input {', '.join(missing)} to batch; the graph has {', '.join(sorted(known))}")
        self.model, self.count, self.names = model, count, set(inputs)
        self.mapped: dict[ir.Value, ir.Value] = {}
        self.of_one: dict[ir.Value, tuple[int, ...]] = {}
        self.editor: Editor

    def run(self) -> Outcome:
        outcome = Outcome()
        nodes = list(self.model.graph)
        self.editor = Editor(self.model, before=nodes[0])
        for value in self.model.graph.inputs:
            if value.name in self.names:
                self.of_one[value] = shape = self._shape(value)
                value.shape = ir.Shape([self.count * shape[0], *shape[1:]])
                self.mapped[value] = self.editor.reshape(value, [self.count, *shape])
        for node in nodes:
            if not any(value in self.mapped for value in node.inputs):
                continue
            self.editor = Editor(self.model, before=node)
            try:
                outputs = self._rule(node)
            except CannotLowerError as error:
                raise GraphError(f"{describe(node)} cannot be mapped over a batch: {error}") from error
            outcome.rewritten.append(describe(node))
            for old, new in zip(node.outputs, outputs, strict=True):
                self.mapped[old] = new
        self._outputs()
        for node in reversed(nodes):
            if any(value in self.mapped for value in node.outputs):
                self.model.graph.remove(node, safe=True)
        return outcome

    def _rule(self, node: ir.Node) -> Sequence[ir.Value]:
        if node.domain:
            raise CannotLowerError(f"the operator is of {node.domain}")
        for names, rule in self._rules.items():
            if node.op_type in names:
                return rule(self, node)
        raise CannotLowerError("no rule for this operator")

    def _outputs(self) -> None:
        for index, value in enumerate(list(self.model.graph.outputs)):
            if value not in self.mapped:
                continue
            shape = self._shape(value)
            last = list(self.model.graph)[-1]
            after = ir.node("Identity", [self.mapped[value]], num_outputs=1)
            self.model.graph.insert_after(last, after)
            editor = Editor(self.model, before=after)
            flat = editor.reshape(self.mapped[value], [self.count * shape[0], *shape[1:]] if shape else [self.count])
            name, value.name = value.name, f"{value.name}_of_one"
            flat.name = name
            self.model.graph.outputs[index] = flat
            self.model.graph.remove(after, safe=True)

    def _attributes(self, node: ir.Node, **changed: Any) -> dict[str, Any]:
        return {name: attr.value for name, attr in node.attributes.items()} | changed

    def _shape(self, value: ir.Value | None) -> tuple[int, ...]:
        """A value's shape in a run of one frame."""
        assert value is not None
        return self.of_one.get(value) or static_shape(value)

    def _source(self, node: ir.Node) -> ir.Value:
        """The first input with its batch."""
        value = node.inputs[0]
        if value not in self.mapped:
            raise CannotLowerError("a parameter depends on the batch, its first input does not")
        return self.mapped[value]

    def _same(self, node: ir.Node) -> Sequence[ir.Value]:
        """Element by element; parameters after the first input are scalars."""
        return [self.editor.op(node.op_type, self._source(node), *node.inputs[1:], **self._attributes(node))]

    def _broadcast(self, node: ir.Node) -> Sequence[ir.Value]:
        rank = len(self._shape(node.outputs[0]))
        values = []
        for value in node.inputs:
            assert value is not None
            shape = self._shape(value)
            if value in self.mapped:
                values.append(self.editor.reshape(self.mapped[value], [self.count, *[1] * (rank - len(shape)), *shape]))
            else:
                values.append(value)
        return [self.editor.op(node.op_type, *values, **self._attributes(node))]

    def _merged(self, node: ir.Node) -> Sequence[ir.Value]:
        """Batches joined; a second input that is a batch, too (a grid), is repeated when it is not mapped."""
        batched = 2 if node.op_type == "GridSample" else 1
        if any(value in self.mapped for value in node.inputs[batched:]):
            raise CannotLowerError("a parameter depends on the batch")
        values = []
        for value in node.inputs[:batched]:
            assert value is not None
            shape = self._shape(value)
            whole = self.mapped.get(value) or self.editor.op(
                "Expand", self.editor.reshape(value, [1, *shape]), self.editor.const([self.count, *shape])
            )
            values.append(self.editor.reshape(whole, [self.count * shape[0], *shape[1:]]))
        rest = list(node.inputs[batched:])
        if node.op_type == "Resize":
            rest = self._resize(node, rest)
        outputs = self.editor.ops(node.op_type, len(node.outputs), *values, *rest, **self._attributes(node))
        shapes = [self._shape(value) for value in node.outputs]
        return [self.editor.reshape(out, [self.count, *shape]) for out, shape in zip(outputs, shapes, strict=True)]

    def _resize(self, node: ir.Node, rest: list[ir.Value | None]) -> list[ir.Value | None]:
        sizes = constant(rest[2]) if len(rest) > 2 else None
        axes = attribute(node, "axes", None)
        if sizes is None or (
            axes is not None and 0 not in [int(axis) % len(self._shape(node.outputs[0])) for axis in axes]
        ):
            return rest
        changed = sizes.copy()
        changed[0 if axes is None else list(axes).index(0)] *= self.count
        return [*rest[:2], self.editor.const(changed), *rest[3:]]

    def _along(self, node: ir.Node) -> Sequence[ir.Value]:
        rank = len(self._shape(node.inputs[0]))
        default = {"Split": 0, "Gather": 0, "ArgMax": 0, "ArgMin": 0}.get(node.op_type, -1)
        axis = int(attribute(node, "axis", default)) % rank + 1
        if node.op_type in ("Gather", "LayerNormalization", "Split") and any(v in self.mapped for v in node.inputs[1:]):
            raise CannotLowerError("its second input depends on the batch")
        joined = len(node.inputs) if node.op_type == "Concat" else 1
        values = [self._repeated(value) for value in node.inputs[:joined]]
        attributes = self._attributes(node, axis=axis)
        return self.editor.ops(node.op_type, len(node.outputs), *values, *node.inputs[joined:], **attributes)

    def _repeated(self, value: ir.Value | None) -> ir.Value:
        assert value is not None
        if value in self.mapped:
            return self.mapped[value]
        shape = self._shape(value)
        whole = self.editor.reshape(value, [1, *shape])
        return self.editor.op("Expand", whole, self.editor.const([self.count, *shape]))

    def _axes(self, node: ir.Node) -> Sequence[ir.Value]:
        """Reductions: their axes move by one."""
        rank = len(self._shape(node.inputs[0]))
        given = constant(node.inputs[1]) if len(node.inputs) > 1 else None
        axes = given.tolist() if given is not None else attribute(node, "axes", None)
        if not axes:
            axes = [] if attribute(node, "noop_with_empty_axes", 0) else list(range(rank))
        moved = [int(axis) % rank + 1 for axis in axes]
        source = self._source(node)
        if self.editor.opset >= 18 or node.op_type == "ReduceSum":
            return [self.editor.op(node.op_type, source, self.editor.const(moved), **self._attributes(node))]
        return [self.editor.op(node.op_type, source, **self._attributes(node, axes=moved))]

    def _reshape(self, node: ir.Node) -> Sequence[ir.Value]:
        return [self.editor.reshape(self._source(node), [self.count, *self._shape(node.outputs[0])])]

    def _transpose(self, node: ir.Node) -> Sequence[ir.Value]:
        perm = attribute(node, "perm", list(range(len(self._shape(node.outputs[0]))))[::-1])
        return [self.editor.transpose(self._source(node), [0, *(int(axis) + 1 for axis in perm)])]

    def _tile(self, node: ir.Node) -> Sequence[ir.Value]:
        """Tile and Expand: nothing along the new axis."""
        times = constant(node.inputs[1])
        if times is None:
            raise CannotLowerError("its second input is not constant")
        if node.op_type == "Expand":
            shape = self._shape(node.outputs[0])
            source = self._shape(node.inputs[0])
            whole = self.editor.reshape(self._source(node), [self.count, *[1] * (len(shape) - len(source)), *source])
            return [self.editor.op("Expand", whole, self.editor.const([self.count, *shape]))]
        return [self.editor.op("Tile", self._source(node), self.editor.const([1, *times.tolist()]))]

    def _slice(self, node: ir.Node) -> Sequence[ir.Value]:
        rank = len(self._shape(node.outputs[0]))
        starts = constant(node.inputs[1])
        axes = constant(node.inputs[3]) if len(node.inputs) > 3 else None
        if starts is None or (axes is None and len(node.inputs) > 3 and node.inputs[3] is not None):
            raise CannotLowerError("its bounds are not constant")
        named = axes if axes is not None else np.arange(len(starts))
        moved = self.editor.const([int(axis) % rank + 1 for axis in named])
        steps = node.inputs[4:5]
        return [self.editor.op("Slice", self._source(node), node.inputs[1], node.inputs[2], moved, *steps)]

    def _pad(self, node: ir.Node) -> Sequence[ir.Value]:
        pads, rank = constant(node.inputs[1]), len(self._shape(node.outputs[0]))
        axes = constant(node.inputs[3]) if len(node.inputs) > 3 else None
        if pads is None:
            raise CannotLowerError("its widths are not constant")
        widths = np.zeros((2, rank + 1), np.int64)
        named = [int(axis) % rank for axis in axes] if axes is not None else list(range(rank))
        widths[:, [axis + 1 for axis in named]] = pads.reshape(2, -1)
        source, mode = self._source(node), str(attribute(node, "mode", "constant"))
        return [self.editor.op("Pad", source, self.editor.const(widths.reshape(-1)), *node.inputs[2:3], mode=mode)]

    def _matmul(self, node: ir.Node) -> Sequence[ir.Value]:
        shapes = [self._shape(value) for value in node.inputs if value is not None]
        if min(map(len, shapes)) < 2:
            raise CannotLowerError("an operand is a vector")
        return self._broadcast(node)

    _rules: ClassVar[dict[tuple[str, ...], Callable[[_Mapping, ir.Node], Sequence[ir.Value]]]] = {
        tuple(UNARY): _same,
        tuple(BROADCAST): _broadcast,
        tuple(MERGED): _merged,
        ALONG: _along,
        tuple(REDUCTIONS): _axes,
        ("Reshape", "Flatten", "Squeeze", "Unsqueeze"): _reshape,
        ("Transpose",): _transpose,
        ("Tile", "Expand"): _tile,
        ("Slice",): _slice,
        ("Pad",): _pad,
        ("MatMul",): _matmul,
    }
