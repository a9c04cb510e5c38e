"""What a node costs: floating-point operations, and bytes read and written.

A multiplication and an addition are one operation each, so a multiply-add counts 2; a transcendental function
counts 1 an element. Bytes are those of each distinct input once and of every output, as if nothing were cached.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import onnx_ir as ir

from .model import attribute
from .shapes import known_shape

T = TypeVar("T")


def _each(entry: T, operators: str) -> dict[str, T]:
    """The same entry for each of several operators, named in one string."""
    return dict.fromkeys(operators.split(), entry)


# Operations an element of the output.
ELEMENTWISE = {
    **_each(
        1,
        "Abs Acos Acosh Add And Asin Asinh Atan Atanh BitShift BitwiseAnd BitwiseNot BitwiseOr BitwiseXor Ceil Clip "
        "Cos Cosh CumSum Div Elu Equal Erf Exp Floor Greater GreaterOrEqual IsInf IsNaN LeakyRelu Less "
        "LessOrEqual Log Mod Mul Neg Not Or PRelu Pow Reciprocal Relu Round Sigmoid Sign Sin Sinh Softplus Softsign "
        "Sqrt Sub Tan Tanh "
        "ThresholdedRelu Xor QuickGelu",
    ),
    **_each(2, "Celu HardSigmoid HardSwish Mish Selu Shrink Swish QuantizeLinear DequantizeLinear"),
    **_each(4, "Gelu FastGelu BiasGelu"),
    "BatchNormalization": 2,  # its statistics are folded into one scale and one shift
    **_each(5, "Softmax LogSoftmax Hardmax"),  # largest, difference, exponential, sum, quotient
    "LpNormalization": 4,
    "MeanVarianceNormalization": 6,
    # mean 1, variance 3, normalising 2, scale and shift 2
    **_each(8, "InstanceNormalization LayerNormalization GroupNormalization GroupNorm"),
    **_each(4, "RMSNormalization SimplifiedLayerNormalization"),
}

# Operations an element of the input.
REDUCTIONS = {
    **_each(1, "ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum ArgMax ArgMin"),
    **_each(2, "ReduceL1 ReduceL2 ReduceSumSquare ReduceLogSum GlobalAveragePool GlobalMaxPool"),
    **_each(3, "ReduceLogSumExp GlobalLpPool"),
}

# The same bytes under another shape: nothing is read or written.
VIEWS = frozenset(_each(0, "Reshape Squeeze Unsqueeze Flatten Identity Dropout"))

# Only what comes out is read.
PICKING = frozenset(_each(0, "Gather GatherElements GatherND Slice Split"))

MOVING = frozenset(
    _each(
        0,
        "Cast CastLike Concat Constant ConstantOfShape DepthToSpace Expand EyeLike OneHot Pad Range Shape "
        "ReverseSequence Size SpaceToDepth Tile Transpose Trilu Where ScatterElements ScatterND Compress "
        "NonZero CenterCropPad ReorderInput ReorderOutput Upsample",
    )
)

SUBGRAPHS = frozenset({"If", "Loop", "Scan"})


@dataclass(frozen=True)
class Cost:
    """Of one run of a node; None where it cannot be told (operator or shape not known)."""

    flops: int | None
    bytes: int | None


def node_cost(node: ir.Node) -> Cost:
    """The cost of a node; a node that holds subgraphs costs nothing itself, its body's nodes do."""
    if node.op_type in SUBGRAPHS and not node.domain:
        return Cost(0, 0)
    return Cost(_flops(node), _bytes(node))


def value_bytes(value: ir.Value) -> int | None:
    """Bytes of a tensor, or None when its shape or type is not known; types below a byte are packed."""
    shape = known_shape(value)
    if shape is None or value.dtype is None or value.dtype in (ir.DataType.STRING, ir.DataType.UNDEFINED):
        return None
    return math.ceil(math.prod(shape) * value.dtype.itemsize)


def parameters(model: ir.Model) -> int:
    """Trained numbers, told by their role: operands of layers, and vectors that scale or shift channels.

    Other constants (grids, masks, shapes) do not count, however large; a weight that two nodes share counts once.
    """
    constants: dict[int, int] = {}
    for node in model.graph.all_nodes():
        for index, value in enumerate(node.inputs):
            tensor = None if value is None else value.const_value
            if tensor is not None and _trained(node, index, tensor):
                constants[id(value)] = tensor.size
    return sum(constants.values())


def _trained(node: ir.Node, index: int, tensor: ir.TensorProtocol) -> bool:
    if node.op_type in LAYERS:
        return index in LAYERS[node.op_type] and tensor.dtype not in INDICES
    if node.op_type in ("Add", "Sub", "Mul", "Div"):
        shape = tensor.shape.numpy()
        return tensor.dtype not in INDICES and tensor.size == max(shape, default=1) > 1
    return False


_WEIGHTS = range(1, 9)

LAYERS: dict[str, range] = {
    **_each(_WEIGHTS, "Conv FusedConv ConvInteger ConvTranspose QLinearConv Gemm FusedGemm MatMulNBits"),
    **_each(_WEIGHTS, "BatchNormalization InstanceNormalization LayerNormalization GroupNormalization"),
    **_each(_WEIGHTS, "RMSNormalization SimplifiedLayerNormalization PRelu LSTM GRU RNN"),
    **_each(range(9), "MatMul FusedMatMul MatMulInteger QLinearMatMul"),
    "DequantizeLinear": range(1),
    "Gather": range(1),  # an embedding
}
"""Operands of layers that hold trained numbers."""

INDICES = frozenset({ir.DataType.INT64, ir.DataType.BOOL, ir.DataType.STRING})


def _bytes(node: ir.Node) -> int | None:
    if node.op_type in VIEWS:
        return 0
    inputs = list({id(value): value for value in node.inputs if value is not None}.values())
    outputs = [value for value in node.outputs if value.name]
    written = [value_bytes(value) for value in outputs]
    read = [value_bytes(value) for value in (inputs[1:] if node.op_type in PICKING else inputs)]
    total = 0
    for size in [*written, *read, *(written if node.op_type in PICKING else ())]:
        if size is None:
            return None
        total += size
    return total


def _flops(node: ir.Node) -> int | None:
    if node.op_type in VIEWS or node.op_type in PICKING or node.op_type in MOVING:
        return 0
    made = _elements(node.outputs[0])
    if made is None:
        return None
    if node.op_type in ELEMENTWISE:
        return ELEMENTWISE[node.op_type] * made
    if node.op_type in ("Max", "Min", "Sum", "Mean"):
        return max(0, len(node.inputs) - (node.op_type != "Mean")) * made
    if node.op_type in REDUCTIONS:
        given = _elements(node.inputs[0])
        return None if given is None else REDUCTIONS[node.op_type] * given
    rule = RULES.get(node.op_type)
    return None if rule is None else rule(node, made)


def _elements(value: ir.Value | None) -> int | None:
    shape = None if value is None else known_shape(value)
    return None if shape is None else math.prod(shape)


def _shape(node: ir.Node, index: int) -> tuple[int, ...] | None:
    value = node.inputs[index] if index < len(node.inputs) else None
    return None if value is None else known_shape(value)


def _conv(node: ir.Node, made: int, weight: int = 1, bias: int = 2) -> int | None:
    shape = _shape(node, weight)
    if shape is None:
        return None
    has_bias = len(node.inputs) > bias and node.inputs[bias] is not None
    return int(made * (2 * math.prod(shape[1:]) + has_bias))


def _qlinear_conv(node: ir.Node, made: int) -> int | None:
    return _conv(node, made, weight=3, bias=8)


def _conv_transpose(node: ir.Node, made: int) -> int | None:
    weight, given = _shape(node, 1), _elements(node.inputs[0])
    if weight is None or given is None:
        return None
    return 2 * given * math.prod(weight[1:]) + (made if len(node.inputs) > 2 and node.inputs[2] is not None else 0)


def _matmul(node: ir.Node, made: int) -> int | None:
    shape = _shape(node, 0)
    inner = int(attribute(node, "K", 0) or 0) if node.op_type == "MatMulNBits" else shape[-1] if shape else 0
    return 2 * made * inner if inner else None


def _gemm(node: ir.Node, made: int) -> int | None:
    shape = _shape(node, 0)
    if shape is None:
        return None
    has_bias = len(node.inputs) > 2 and node.inputs[2] is not None
    return made * (2 * shape[0 if attribute(node, "transA", 0) else 1] + has_bias)


def _pool(node: ir.Node, made: int) -> int | None:
    kernel = attribute(node, "kernel_shape")
    return made * math.prod(kernel) if isinstance(kernel, list) else None


def _grid_sample(node: ir.Node, made: int) -> int | None:
    grid = _shape(node, 1)
    if grid is None:
        return None
    mode, axes, points = attribute(node, "mode", "linear"), grid[-1], math.prod(grid[:-1])
    taps = {"nearest": 1, "cubic": 4, "bicubic": 4}.get(str(mode), 2) ** axes
    # scaling, flooring and the weights of each axis once a point; a multiply-add a tap for each channel
    return points * (5 * axes + taps) + made * (2 * taps if taps > 1 else 0)


def _resize(node: ir.Node, made: int) -> int | None:
    mode = attribute(node, "mode", "nearest")
    if mode == "nearest":
        return 0
    before, after = _shape(node, 0), known_shape(node.outputs[0])
    if before is None or after is None:
        return None
    changed = sum(a != b for a, b in zip(before, after, strict=True))
    return 2 * made * {"linear": 2, "cubic": 4}.get(str(mode), 1) ** changed


def _einsum(node: ir.Node, made: int) -> int | None:
    terms = str(attribute(node, "equation", "")).replace(" ", "").split("->")[0].split(",")
    lengths: dict[str, int] = {}
    for index, term in enumerate(terms):
        shape = _shape(node, index)
        if shape is None or "." in term:
            return None
        lengths.update(zip(term, shape, strict=True))
    return len(terms) * math.prod(lengths.values())


def _dft(node: ir.Node, made: int) -> int | None:
    shape = known_shape(node.outputs[0])
    axis = attribute(node, "axis", 1)
    if shape is None or not isinstance(axis, int) or len(node.inputs) > 2:  # from opset 20 the axis is an input
        return None
    length = shape[axis]
    return round(5 * made / 2 * math.log2(max(2, length)))


RULES: dict[str, Callable[[ir.Node, int], int | None]] = {
    **dict.fromkeys(("Conv", "FusedConv", "ConvInteger", "NhwcFusedConv"), _conv),
    "QLinearConv": _qlinear_conv,
    "ConvTranspose": _conv_transpose,
    **dict.fromkeys(("MatMul", "MatMulInteger", "FusedMatMul", "MatMulNBits", "QLinearMatMul"), _matmul),
    **dict.fromkeys(("Gemm", "FusedGemm"), _gemm),
    **dict.fromkeys(("MaxPool", "AveragePool", "LpPool"), _pool),
    "GridSample": _grid_sample,
    "Resize": _resize,
    "Einsum": _einsum,
    "DFT": _dft,
}
