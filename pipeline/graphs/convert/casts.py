"""Giving every node its precision: weights rounded once, and as few casts as possible."""

from __future__ import annotations

from collections.abc import Set

import numpy as np
import onnx
import onnx_ir as ir

from ..lower.editing import Editor
from ..model import clean
from ..shapes import infer_node
from .overflow import NUMPY_TYPES

FLOATS = (ir.DataType.FLOAT, ir.DataType.FLOAT16, ir.DataType.BFLOAT16)


def apply_precision(model: ir.Model, halves: Set[ir.Node], half: ir.DataType) -> int:
    """Let the nodes of `halves` compute in `half` and all others in float32; how many casts that took. In place.

    Every value is cast at most once a type, every constant stored at most once a type; the graph's inputs and outputs
    keep their types.
    """
    caster = _Caster(model)
    for node in list(model.graph):
        converted = node in halves
        for position, value in enumerate(node.inputs):
            if value is None or value.dtype not in FLOATS or not (converted or value in caster.rounded):
                continue
            if not converted or _follows_output(node, position, model.opset_imports):
                caster.set_input(node, position, value, half if converted else ir.DataType.FLOAT)
        if converted:
            infer_node(node, dict(model.opset_imports))
            caster.rounded.update(value for value in node.outputs if value.dtype == half)
    for value in list(model.graph.outputs):
        if value in caster.rounded:
            caster.restore_output(value)
    clean(model)
    _drop_unused_constants(model.graph)
    return caster.casts


def _follows_output(node: ir.Node, position: int, opsets: dict[str, int]) -> bool:
    """Whether an input's type is bound to the type of the node's first output."""
    schema = onnx.defs.get_schema(node.op_type, opsets[node.domain], node.domain)
    port = schema.inputs[min(position, len(schema.inputs) - 1)]
    return bool(port.type_str == schema.outputs[0].type_str)


class _Caster:
    def __init__(self, model: ir.Model) -> None:
        self.model = model
        self.rounded: set[ir.Value] = set()
        """Values that are half now and were float32."""
        self.casts = 0
        self._made: dict[tuple[ir.Value, ir.DataType], ir.Value] = {}

    def set_input(self, node: ir.Node, position: int, value: ir.Value, dtype: ir.DataType) -> None:
        if value.dtype == dtype:
            return
        made = self._made.get((value, dtype))
        if made is None:
            made = self._made[value, dtype] = self._cast(value, dtype, node)
            self._made[made, value.dtype or dtype] = value
        node.replace_input_with(position, made)

    def restore_output(self, value: ir.Value) -> None:
        """A graph output is float32 again, under its name."""
        name, value.name = value.name, f"{value.name}_half"
        producer = value.producer()
        assert producer is not None
        made = ir.node("Cast", [value], attributes={"to": ir.DataType.FLOAT.value}, name=f"{name}_cast")
        self.model.graph.insert_after(producer, made)
        infer_node(made, dict(self.model.opset_imports))
        for index, output in enumerate(self.model.graph.outputs):
            if output is value:
                self.model.graph.outputs[index] = made.outputs[0]
        made.outputs[0].name = name
        self.casts += 1

    def _cast(self, value: ir.Value, dtype: ir.DataType, node: ir.Node) -> ir.Value:
        editor = Editor(self.model, before=node)
        if value.const_value is not None:
            return editor.const(value.const_value.numpy().astype(NUMPY_TYPES.get(dtype, np.dtype(np.float32))))
        before = value.producer()
        if before is not None and before.op_type == "Cast" and not before.domain:
            source = before.inputs[0]
            if source is not None and source.dtype == dtype:  # it was widened from this very type
                return source
        self.casts += 1
        return editor.op("Cast", value, to=dtype.value)


def _drop_unused_constants(graph: ir.Graph) -> None:
    for name, value in list(graph.initializers.items()):
        if not value.uses() and not value.is_graph_output():
            del graph.initializers[name]


def weight_bytes(graph: ir.Graph) -> int:
    """Of all constants."""
    return sum(value.const_value.nbytes for value in graph.initializers.values() if value.const_value is not None)
