"""Which nodes must compute in float32, found from what their results are used for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set

import onnx
import onnx_ir as ir

from ..model import constant

SAMPLING = {("GridSample", 1), ("RoiAlign", 1), ("AffineGrid", 0), ("DeformConv", 2), ("MaxRoiPool", 1)}
"""Inputs that are coordinates: half precision has 11 bits, which is an eighth of a pixel at pixel 255."""

STEPS = {"Ceil", "Floor", "Mod", "Round", "Sign", "TopK"}
"""Operators whose float results jump: a rounding error before the jump becomes a whole step."""

AMPLIFYING = {"Acosh", "Atanh", "Cos", "Cosh", "Exp", "Log", "LogSoftmax", "Reciprocal", "Sin", "Sinh", "Softmax"} | {
    "Sqrt",
    "Tan",
}
"""Functions whose slope has no bound, or that see a small difference of large numbers: what feeds them is exact."""

ACCUMULATING = {"CumSum", "GlobalAveragePool", "GlobalLpPool", "LpPool", "Pow"} | {
    f"Reduce{kind}" for kind in ("L1", "L2", "LogSum", "LogSumExp", "Mean", "Prod", "Sum", "SumSquare")
}
"""Sums of many terms and powers: they overflow or lose small terms in half precision."""

NORMALISING = {"BatchNormalization", "GroupNormalization", "InstanceNormalization", "LayerNormalization"} | {
    "LRN",
    "LpNormalization",
    "MeanVarianceNormalization",
    "RMSNormalization",
}
"""Normalisations: statistics in float32. The errors of a rounded input average out in them, so what feeds
them need not be exact, and what they give may be rounded at once."""

Reasons = dict[ir.Node, str]
"""Nodes that compute in float32, each with the reason."""


def exact_nodes(
    model: ir.Model, heavy: Set[ir.Node], half: ir.DataType, found: Reasons, *, half_statistics: bool = False
) -> Reasons:
    """The nodes that stay in float32.

    Precision is lost where a result is *used* sensitively: as a coordinate, an index, a comparison, the argument of
    an exponential. So the search starts at those uses and goes back through every light operator, whatever it is, to
    the nearest heavy product, which may be half: it sums in float32 and its result is cast. Then it goes forward:
    a light node that reads nothing but exact values costs nothing to keep exact, so half precision begins at the
    heavy products and not before. That covers coordinates and sample weights that reach no operator made for them.

    Args:
        heavy: see `work.heavy_nodes`.
        half: the other type, FLOAT16 or BFLOAT16.
        found: nodes already known to need float32 (overflow), whose results may still be rounded.
        half_statistics: leave normalisations to the runtime, which sums their statistics in float32.
    """
    reasons: Reasons = dict(found)
    loose = set(found)
    for node in model.graph:
        if not has_half_form(node, half, model.opset_imports):
            reasons.setdefault(node, f"the operator has no {half.name} form")
            loose.add(node)
        elif node.op_type in NORMALISING and not half_statistics:
            reasons.setdefault(node, "statistics of a normalisation")
            loose.add(node)
        elif node.op_type in ACCUMULATING:
            reasons.setdefault(node, "sums many terms")
    for node in model.graph:
        for value, why in _sensitive_uses(node):
            _trace(value, why, heavy, reasons, loose)
        if _own_reason(node):
            reasons[node] = _own_reason(node)
            loose.discard(node)
    for value in model.graph.outputs:
        maker = value.producer()
        if maker is not None and maker not in heavy:
            reasons.setdefault(maker, "makes an output of the graph")
    _carry_on(model.graph, heavy, reasons, loose)
    return {node: why for node, why in reasons.items() if touches_floats(node)}


def has_half_form(node: ir.Node, half: ir.DataType, opsets: dict[str, int]) -> bool:
    """Whether the operator's definition lets its first input and output be of the type `half`."""
    try:
        schema = onnx.defs.get_schema(node.op_type, opsets[node.domain], node.domain)
    except (onnx.defs.SchemaError, KeyError):
        return False
    allowed = {constraint.type_param_str: constraint.allowed_type_strs for constraint in schema.type_constraints}
    return all(f"tensor({half.name.lower()})" in allowed.get(port.type_str, ()) for port in schema.outputs[:1])


def touches_floats(node: ir.Node) -> bool:
    """Whether a node reads or makes float32."""
    return any(value is not None and value.dtype == ir.DataType.FLOAT for value in (*node.inputs, *node.outputs))


def _own_reason(node: ir.Node) -> str:
    if any(node.op_type == operator for operator, _ in SAMPLING):
        return "samples at coordinates"
    if node.op_type in AMPLIFYING:
        return "amplifies errors"
    if node.op_type in STEPS or _makes_discrete(node):
        return "turns numbers into steps"
    return ""


def _sensitive_uses(node: ir.Node) -> Iterator[tuple[ir.Value, str]]:
    for position, value in enumerate(node.inputs):
        if value is None or value.dtype != ir.DataType.FLOAT:
            continue
        if (node.op_type, position) in SAMPLING:
            yield value, "feeds coordinates"
        elif node.op_type in AMPLIFYING:
            yield value, f"feeds {node.op_type}"
        elif node.op_type in STEPS or _makes_discrete(node):
            yield value, "feeds indices or comparisons"


def _makes_discrete(node: ir.Node) -> bool:
    """Whether floats go in and only integers or booleans come out, by their values."""
    if node.op_type in ("Shape", "Size") or not any(
        v is not None and v.dtype == ir.DataType.FLOAT for v in node.inputs
    ):
        return False
    return all(value.dtype is not None and not value.dtype.is_floating_point() for value in node.outputs)


def _trace(value: ir.Value, why: str, heavy: Set[ir.Node], reasons: Reasons, loose: set[ir.Node]) -> None:
    waiting = [value]
    seen: set[ir.Value] = set()
    while waiting:
        value = waiting.pop()
        node = value.producer()
        if node is None or node in heavy or value in seen or value.dtype != ir.DataType.FLOAT:
            continue
        seen.add(value)
        if node not in reasons or node in loose:
            reasons[node] = why
            loose.discard(node)
        waiting.extend(_varying(node.inputs))


def _carry_on(graph: ir.Graph, heavy: Set[ir.Node], reasons: Reasons, loose: Set[ir.Node]) -> None:
    """Light nodes that read nothing rounded are exact, too."""
    exact: set[ir.Value] = set(graph.inputs)
    for node in graph:
        if node in reasons:
            exact.update(() if node in loose else node.outputs)
        elif node not in heavy and all(value in exact for value in _varying(node.inputs)):
            if touches_floats(node):
                reasons[node] = "reads exact values only"
            exact.update(node.outputs)


def _varying(values: Iterable[ir.Value | None]) -> Iterator[ir.Value]:
    """Those float32 values that are no constants."""
    for value in values:
        if value is not None and value.dtype == ir.DataType.FLOAT and constant(value) is None:
            yield value
