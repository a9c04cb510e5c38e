"""Adding nodes to a graph, with every new value's type and shape known at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from ...errors import GraphError
from ..model import constant
from ..shapes import infer_node, known_shape


class Editor:
    """Adds nodes in front of a given node of a graph.

    `editor = Editor(model, before=node)`; every `op` appends one node there and returns its output.
    `replace(outputs)` puts the last results in the place of the given node's outputs and removes it.
    """

    def __init__(self, model: ir.Model, before: ir.Node) -> None:
        self.model = model
        self.graph = model.graph
        self.before = before
        self.opsets = dict(model.opset_imports)

    @property
    def opset(self) -> int:
        """Version of the standard operators in this graph."""
        return self.opsets[""]

    def op(self, op_type: str, *inputs: ir.Value | None, domain: str = "", **attributes: Any) -> ir.Value:
        """Add a node with one output; its type and shape are inferred.

        Raises:
            GraphError: inference finds no shape, or the inputs do not fit the operator.
        """
        (value,) = self.ops(op_type, 1, *inputs, domain=domain, **attributes)
        return value

    def ops(
        self, op_type: str, outputs: int, *inputs: ir.Value | None, domain: str = "", **attributes: Any
    ) -> tuple[ir.Value, ...]:
        """Like `op`, for an operator with several outputs."""
        node = ir.node(op_type, list(inputs), attributes=attributes, domain=domain, num_outputs=outputs)
        for value in node.outputs:
            value.name = self._fresh(op_type)
        node.name = node.outputs[0].name
        self.graph.insert_before(self.before, node)
        try:
            infer_node(node, self.opsets)
        except Exception as error:
            self.graph.remove(node)
            raise GraphError(f"{op_type} made for {self.before.name or self.before.op_type}: {error}") from error
        return tuple(node.outputs)

    def const(self, array: np.ndarray | np.generic | Sequence[int]) -> ir.Value:
        """A constant; a NumPy scalar has no axes, a list of integers becomes int64."""
        dtype = None if isinstance(array, np.ndarray | np.generic) else np.int64
        array = np.asarray(array, dtype=dtype, order="C")
        name = self._fresh("c")
        tensor = ir.tensor(array, name=name)
        value = ir.Value(name=name, type=ir.TensorType(tensor.dtype), shape=ir.Shape(array.shape), const_value=tensor)
        self.graph.register_initializer(value)
        return value

    def reshape(self, value: ir.Value, shape: Sequence[int]) -> ir.Value:
        """The same data with another shape; the value itself when it has that shape, constants at once."""
        if known_shape(value) == tuple(shape):
            return value
        known = constant(value)
        if known is not None:
            return self.const(known.reshape(shape))
        return self.op("Reshape", value, self.const(list(shape)))

    def transpose(self, value: ir.Value, perm: Sequence[int]) -> ir.Value:
        """Axes in another order; the value itself when nothing moves, constants at once."""
        if list(perm) == list(range(len(perm))):
            return value
        known = constant(value)
        if known is not None:
            return self.const(np.ascontiguousarray(known.transpose(perm)))
        return self.op("Transpose", value, perm=list(perm))

    def slice(self, value: ir.Value, axis: int, start: int, stop: int, step: int = 1) -> ir.Value:
        """A part of one axis."""
        return self.op("Slice", value, *(self.const([number]) for number in (start, stop, axis, step)))

    def replace(self, outputs: Sequence[ir.Value], node: ir.Node | None = None) -> None:
        """Use `outputs` wherever the node's outputs were used, and remove the node; graph outputs keep their names."""
        node = node or self.before
        for old, new in zip(node.outputs, outputs, strict=True):
            if old.is_graph_output():
                if new.is_graph_output() or new.is_initializer() or new.producer() is None:
                    new = self.op("Identity", new)
                name, old.name = old.name, f"{old.name}_was"
                old.replace_all_uses_with(new, replace_graph_outputs=True)
                new.name = name
            else:
                old.replace_all_uses_with(new)
        self.graph.remove(node, safe=True)

    def _fresh(self, stem: str) -> str:
        taken: set[str] = self.model.meta.setdefault("talkreel.names", set())
        if not taken:
            taken.update(self.graph.initializers, (value.name or "" for value in self.graph.inputs))
            taken.update(value.name or "" for node in self.graph for value in node.outputs)
        counter = self.model.meta.setdefault("talkreel.counter", 0) + 1
        while f"{stem}_{counter}" in taken:
            counter += 1
        self.model.meta["talkreel.counter"] = counter
        taken.add(f"{stem}_{counter}")
        return f"{stem}_{counter}"
