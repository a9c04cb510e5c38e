"""A small writer of ONNX graphs: numpy-like expressions become nodes.

    g = Graph("example")
    x = g.input("x", [1, 3])
    y = (x * 2 + 1).clip(0, 1)
    g.output("y", y, [1, 3])
    g.save(path)

The file is the same bit for bit on every machine: names are counted, nodes
keep the order in which they were written, the versions are fixed, equal
constants are stored once, and equal nodes written once. Constants must
therefore not come from functions whose last bit depends on the machine
(LAPACK, vectorised exp or sin): store such tables as data, or let the graph
compute them.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Union

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

OPSET = 20
"""First opset with GridSample "linear"/"cubic" and rank-free modes; onnxruntime >= 1.17 runs it."""

IR_VERSION = 9

Operand = Union["Value", float, int, Sequence[Any], np.ndarray]


class Value:
    """One tensor of a graph under construction. Arithmetic writes nodes.

    Methods named as numpy's do what those do; axes and shapes are given one by one.
    """

    __array_priority__ = 1000  # numpy must hand `array * value` to us

    def __init__(self, graph: Graph, name: str) -> None:
        self.graph = graph
        self.name = name

    def op(self, kind: str, *others: Operand, **attributes: Any) -> Value:
        """A node with this as its first input; its only output."""
        return self.graph.op(kind, self, *others, **attributes)

    def __add__(self, other: Operand) -> Value:
        return self.op("Add", other)

    def __radd__(self, other: Operand) -> Value:
        return self.graph.op("Add", other, self)

    def __sub__(self, other: Operand) -> Value:
        return self.op("Sub", other)

    def __rsub__(self, other: Operand) -> Value:
        return self.graph.op("Sub", other, self)

    def __mul__(self, other: Operand) -> Value:
        return self.op("Mul", other)

    def __rmul__(self, other: Operand) -> Value:
        return self.graph.op("Mul", other, self)

    def __truediv__(self, other: Operand) -> Value:
        return self.op("Div", other)

    def __rtruediv__(self, other: Operand) -> Value:
        return self.graph.op("Div", other, self)

    def __matmul__(self, other: Operand) -> Value:
        return self.op("MatMul", other)

    def __rmatmul__(self, other: Operand) -> Value:
        return self.graph.op("MatMul", other, self)

    def __pow__(self, other: Operand) -> Value:
        return self.op("Pow", other)

    def __neg__(self) -> Value:
        return self.op("Neg")

    def __lt__(self, other: Operand) -> Value:
        return self.op("Less", other)

    def __gt__(self, other: Operand) -> Value:
        return self.op("Greater", other)

    def __getitem__(self, key: Any) -> Value:
        """Basic slicing with a step of 1 or more; integers drop their axis; `None` is not supported."""
        keys = key if isinstance(key, tuple) else (key,)
        starts, ends, axes, steps, drop = [], [], [], [], []
        for axis, item in enumerate(keys):
            if isinstance(item, int):
                starts.append(item)
                ends.append(item + 1 if item != -1 else np.iinfo(np.int64).max)
                steps.append(1)
                axes.append(axis)
                drop.append(axis)
            elif item != slice(None):
                starts.append(item.start or 0)
                ends.append(np.iinfo(np.int64).max if item.stop is None else item.stop)
                steps.append(item.step or 1)
                axes.append(axis)
        value = self
        if axes:
            value = value.op("Slice", *(np.array(a, np.int64) for a in (starts, ends, axes, steps)))
        if drop:
            value = value.op("Squeeze", np.array(drop, np.int64))
        return value

    def take(self, indices: Sequence[int], axis: int = 0) -> Value:
        return self.op("Gather", np.array(indices, np.int64), axis=axis)

    def reshape(self, *shape: int) -> Value:
        return self.op("Reshape", np.array(shape, np.int64))

    def transpose(self, *axes: int) -> Value:
        return self.op("Transpose", perm=list(axes))

    def unsqueeze(self, *axes: int) -> Value:
        return self.op("Unsqueeze", np.array(axes, np.int64))

    def expand(self, *shape: int) -> Value:
        return self.op("Expand", np.array(shape, np.int64))

    def _reduce(self, kind: str, axes: Sequence[int], keep: bool) -> Value:
        return self.op(kind, np.array(axes, np.int64), keepdims=int(keep))

    def sum(self, *axes: int, keep: bool = False) -> Value:
        return self._reduce("ReduceSum", axes, keep)

    def mean(self, *axes: int, keep: bool = False) -> Value:
        return self._reduce("ReduceMean", axes, keep)

    def max(self, *axes: int, keep: bool = False) -> Value:
        return self._reduce("ReduceMax", axes, keep)

    def min(self, *axes: int, keep: bool = False) -> Value:
        return self._reduce("ReduceMin", axes, keep)

    def clip(self, low: Operand | None, high: Operand | None) -> Value:
        return self.graph.op("Clip", self, "" if low is None else low, "" if high is None else high)

    def sqrt(self) -> Value:
        return self.op("Sqrt")

    def exp(self) -> Value:
        return self.op("Exp")

    def log(self) -> Value:
        return self.op("Log")

    def abs(self) -> Value:
        return self.op("Abs")

    def sign(self) -> Value:
        return self.op("Sign")

    def cast(self, dtype: int = TensorProto.FLOAT) -> Value:
        return self.op("Cast", to=dtype)


class Graph:
    """Nodes, constants, inputs and outputs in the order in which they were written."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._nodes: list[onnx.NodeProto] = []
        self._made: dict[bytes, list[str]] = {}
        self._constants: dict[tuple[str, tuple[int, ...], bytes], str] = {}
        self._initializers: list[onnx.TensorProto] = []
        self._inputs: list[onnx.ValueInfoProto] = []
        self._outputs: list[onnx.ValueInfoProto] = []

    def input(self, name: str, shape: Sequence[int | str], dtype: int = TensorProto.FLOAT) -> Value:
        """One more input of the graph; a text in its shape names a dimension."""
        self._inputs.append(helper.make_tensor_value_info(name, dtype, list(shape)))
        return Value(self, name)

    def output(self, name: str, value: Value, shape: Sequence[int | str], dtype: int = TensorProto.FLOAT) -> None:
        """One more output of the graph, of that name, shape and type."""
        self._nodes.append(helper.make_node("Identity", [value.name], [name]))
        self._outputs.append(helper.make_tensor_value_info(name, dtype, list(shape)))

    def constant(self, array: Any) -> Value:
        """A constant; Python numbers and float64 arrays become float32, integer arrays stay as they are."""
        array = np.asarray(array)
        if array.dtype == np.float64 or (array.dtype.kind in "iu" and array.dtype != np.int64):
            array = array.astype(np.float32)
        array = np.ascontiguousarray(array)
        key = (array.dtype.str, array.shape, array.tobytes())
        if key not in self._constants:
            name = f"c{len(self._constants)}"
            self._constants[key] = name
            self._initializers.append(numpy_helper.from_array(array, name))
        return Value(self, self._constants[key])

    def _operand(self, operand: Operand | str) -> str:
        if isinstance(operand, Value):
            return operand.name
        if isinstance(operand, str):  # "" stands for an optional input left out
            return operand
        if isinstance(operand, (int, float)):
            return self.constant(np.float32(operand)).name
        if isinstance(operand, (list, tuple)):
            return self.constant(np.asarray(operand, np.float32)).name
        return self.constant(operand).name

    def ops(self, kind: str, *operands: Operand | str, count: int = 1, **attributes: Any) -> list[Value]:
        """Write one node, unless the same one stands there already, and return its `count` outputs."""
        inputs = [self._operand(operand) for operand in operands]
        while inputs and inputs[-1] == "":
            inputs.pop()
        same = helper.make_node(kind, inputs, [""] * count, **attributes).SerializeToString(deterministic=True)
        if same not in self._made:
            names = [f"t{len(self._nodes)}" + (f"_{i}" if count > 1 else "") for i in range(count)]
            self._nodes.append(helper.make_node(kind, inputs, names, **attributes))
            self._made[same] = names
        return [Value(self, name) for name in self._made[same]]

    def op(self, kind: str, *operands: Operand | str, **attributes: Any) -> Value:
        """`ops` of a node with one output."""
        return self.ops(kind, *operands, **attributes)[0]

    def concat(self, values: Sequence[Operand], axis: int) -> Value:
        return self.op("Concat", *values, axis=axis)

    def where(self, condition: Value, yes: Operand, no: Operand) -> Value:
        return self.op("Where", condition, yes, no)

    def maximum(self, *values: Operand) -> Value:
        return self.op("Max", *values)

    def minimum(self, *values: Operand) -> Value:
        return self.op("Min", *values)

    def splice(self, model: onnx.ModelProto, *inputs: Value) -> Value:
        """Write another graph's nodes here, given its inputs in their order: its first output.

        The graph must be one of this OPSET or of an earlier one whose operators have not changed since.
        """
        names = {given.name: value.name for given, value in zip(model.graph.input, inputs, strict=True)}
        for tensor in model.graph.initializer:
            names[tensor.name] = self.constant(numpy_helper.to_array(tensor)).name
        for node in model.graph.node:
            operands = [Value(self, names[name]) if name else "" for name in node.input]
            attributes = {a.name: helper.get_attribute_value(a) for a in node.attribute}
            made = self.ops(node.op_type, *operands, count=len(node.output), **attributes)
            names.update(zip(node.output, (value.name for value in made), strict=True))
        return Value(self, names[model.graph.output[0].name])

    def smoothstep(self, value: Value) -> Value:
        """3t^2 - 2t^3 with t clipped to 0..1."""
        t = value.clip(0, 1)
        return t * t * (3 - 2 * t)

    def model(self) -> onnx.ModelProto:
        """The graph as a checked model."""
        graph = helper.make_graph(self._nodes, self.name, self._inputs, self._outputs, self._initializers)
        model = helper.make_model(
            graph,
            opset_imports=[helper.make_opsetid("", OPSET)],
            ir_version=IR_VERSION,
            producer_name="talkreel",
            producer_version="",
        )
        onnx.checker.check_model(model)
        return model

    def save(self, path: Path) -> None:
        """Write `model` to a file, the same bytes on every machine."""
        path.write_bytes(self.model().SerializeToString(deterministic=True))
