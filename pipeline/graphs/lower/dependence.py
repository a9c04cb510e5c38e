"""Which elements of a value are equal whatever the inputs are.

Value numbering, element by element: two elements get the same number when they are the same constant, or made by
the same operators from elements of the same numbers. A value is thus proven constant along an axis (`varies`)
without knowing what the graph is for.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import onnx
import onnx_ir as ir
from onnx.reference import ReferenceEvaluator

from ..model import constant
from ..shapes import known_shape
from .passes import CannotLowerError

# fmt: off
ELEMENTWISE = frozenset({
    "Abs", "Add", "And", "Cast", "Ceil", "Clip", "Cos", "Div", "Elu", "Equal", "Erf", "Exp", "Floor", "Greater",
    "GreaterOrEqual", "Identity", "LeakyRelu", "Less", "LessOrEqual", "Log", "Max", "Mean", "Min", "Mod", "Mul",
    "Neg", "Not", "Or", "Pow", "Reciprocal", "Relu", "Round", "Sigmoid", "Sign", "Sin", "Softplus", "Sqrt",
    "Sub", "Sum", "Tan", "Tanh", "Where", "Xor",
})
"""Each element of the result depends on the elements in its place alone, with broadcasting."""

MOVEMENT = frozenset({
    "Concat", "Expand", "Flatten", "Gather", "Identity", "Reshape", "Slice", "Split", "Squeeze", "Tile",
    "Transpose", "Unsqueeze",
})
"""Each element of the result is one of the inputs' (all of Concat's, the first of the others, the rest constant)."""
# fmt: on

MAX_ELEMENTS = 1 << 26
"""Larger values are not analysed."""

MAX_SHARED = 4096
"""Constants with more different elements than this are not compared with other constants."""

MAX_DEPTH = 100
"""Operators looked through, one behind the other; what lies further back counts as unknown."""


class Numbering:
    """Numbers of the elements of a graph's values. The graph must not change while one is in use."""

    def __init__(self) -> None:
        self._known: dict[ir.Value, np.ndarray] = {}
        self._next = 0
        self._constants: dict[tuple[str, bytes], int] = {}

    def of(self, value: ir.Value, depth: int = 0) -> np.ndarray:
        """Numbers, in the value's shape.

        Raises:
            CannotLowerError: a shape is not known, or a value is larger than `MAX_ELEMENTS`.
        """
        if value not in self._known:
            self._known[value] = self._number(value, depth)
        return self._known[value]

    def combined(self, operands: Sequence[np.ndarray]) -> np.ndarray:
        """New numbers for elements made from others by one operator: equal where all the operands' are."""
        return self._fresh(_combine(operands))

    def _number(self, value: ir.Value, depth: int) -> np.ndarray:
        shape = bounded_shape(value)
        known = constant(value)
        if known is not None and known.itemsize <= 8:
            return self._of_constants(known)
        node = value.producer()
        if node is not None and depth < MAX_DEPTH:
            if is_movement(node):
                sources = [self.of(source, depth + 1) for source in sources_of(node)]
                return move(node, sources)[position_of(value)]
            if is_elementwise(node):
                operands = [self.of(source, depth + 1) for source in node.inputs if source is not None]
                return self.combined([np.broadcast_to(operand, shape) for operand in operands])
        return self._fresh(np.arange(int(np.prod(shape)), dtype=np.int64).reshape(shape))

    def _of_constants(self, array: np.ndarray) -> np.ndarray:
        bits = array.reshape(-1).view(f"u{array.itemsize}")
        found, inverse = np.unique(bits, return_inverse=True)
        if len(found) > MAX_SHARED:
            return self._fresh(inverse.reshape(array.shape))
        numbers = np.empty(len(found), np.int32)
        for index, number in enumerate(found):
            key = (array.dtype.str, number.tobytes())
            if key not in self._constants:
                self._constants[key] = self._next
                self._next += 1
            numbers[index] = self._constants[key]
        return numbers[inverse].reshape(array.shape)

    def _fresh(self, numbers: np.ndarray) -> np.ndarray:
        """Numbers never used before, equal where the given ones are; they count from 0."""
        result = (numbers + self._next).astype(np.int32)
        self._next += int(numbers.max(initial=-1)) + 1
        return result


def varies(numbers: np.ndarray) -> tuple[bool, ...]:
    """For each axis, whether the elements along it may differ."""
    return tuple(bool((numbers != numbers.take([0], axis)).any()) for axis in range(numbers.ndim))


def is_elementwise(node: ir.Node) -> bool:
    """Whether a node works element by element."""
    return not node.domain and node.op_type in ELEMENTWISE and len(node.outputs) == 1


def is_movement(node: ir.Node) -> bool:
    """Whether a node only moves elements, in a way that does not depend on the inputs."""
    if node.domain or node.op_type not in MOVEMENT or any(value is None for value in sources_of(node)):
        return False
    parameters = node.inputs[len(sources_of(node)) :]
    return all(value is None or constant(value) is not None for value in parameters)


def sources_of(node: ir.Node) -> list[ir.Value]:
    """The inputs whose elements a moving node moves."""
    inputs = node.inputs if node.op_type == "Concat" else node.inputs[:1]
    return [value for value in inputs if value is not None]


def move(node: ir.Node, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    """What a moving node makes of arrays in the place of its sources: one array an output."""
    names = [f"source{index}" for index in range(len(arrays))]
    parameters = {
        f"parameter{index}": constant(value)
        for index, value in enumerate(node.inputs)
        if value is not None and index >= len(arrays)
    }
    inputs = names + [
        "" if value is None else f"parameter{index}" for index, value in enumerate(node.inputs) if index >= len(arrays)
    ]
    proto = ir.to_proto(node)
    del proto.input[:]
    proto.input.extend(inputs)
    graph = onnx.helper.make_graph(
        [proto],
        "move",
        [onnx.helper.make_value_info(name, onnx.TypeProto()) for name in names],
        [onnx.helper.make_value_info(name, onnx.TypeProto()) for name in proto.output],
        [onnx.numpy_helper.from_array(np.asarray(array), name) for name, array in parameters.items()],
    )
    opset = node.version or _opset_of(node)
    made = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", opset)])
    return list(ReferenceEvaluator(made).run(None, dict(zip(names, arrays, strict=True))))


def trace(value: ir.Value) -> Iterable[tuple[ir.Value, np.ndarray]]:
    """The values that a value's elements are moved from, itself first, each with the flat positions in it."""
    places = np.arange(int(np.prod(bounded_shape(value)))).reshape(bounded_shape(value))
    yield value, places
    while (node := value.producer()) is not None and is_movement(node) and len(sources_of(node)) == 1:
        (source,) = sources_of(node)
        shape = bounded_shape(source)
        moved = move(node, [np.arange(int(np.prod(shape))).reshape(shape)])[position_of(value)]
        value, places = source, moved.reshape(-1)[places]
        yield value, places


def _combine(operands: Sequence[np.ndarray]) -> np.ndarray:
    """Numbers from 0 that are equal where all operands' are."""
    result = _dense(operands[0])
    for operand in operands[1:]:
        other = _dense(operand)
        result = _dense(result * (int(other.max(initial=0)) + 1) + other)
    return result


def _dense(numbers: np.ndarray) -> np.ndarray:
    """The same numbers counted from 0 without gaps, int64."""
    if not numbers.size:
        return numbers.astype(np.int64)
    lowest, highest = int(numbers.min()), int(numbers.max())
    if highest - lowest > 4 * numbers.size + 1024:
        return np.unique(numbers, return_inverse=True)[1].reshape(numbers.shape).astype(np.int64)
    seen = np.zeros(highest - lowest + 1, np.int64)
    seen[numbers - lowest] = 1
    counted: np.ndarray = np.cumsum(seen) - 1
    return counted[numbers - lowest]


def bounded_shape(value: ir.Value) -> tuple[int, ...]:
    """A value's shape.

    Raises:
        CannotLowerError: it is not known, or the value is larger than `MAX_ELEMENTS`.
    """
    shape = known_shape(value)
    if shape is None:
        raise CannotLowerError(f"the shape of {value.name} is not known")
    if int(np.prod(shape)) > MAX_ELEMENTS:
        raise CannotLowerError(f"{value.name} is too large to analyse")
    return shape


def position_of(value: ir.Value) -> int:
    """Which of its producer's outputs a value is."""
    index = value.index()
    assert index is not None
    return index


def _opset_of(node: ir.Node) -> int:
    graph = node.graph
    assert isinstance(graph, ir.Graph)
    return graph.opset_imports[""]
