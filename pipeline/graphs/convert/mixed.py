"""Mixed precision of a whole graph."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import onnx
import onnx_ir as ir

from ...errors import GraphError
from ..model import describe, name_of
from .casts import apply_precision, weight_bytes
from .overflow import HEADROOM, Feeds, magnitudes, unfit_nodes
from .tracing import exact_nodes, touches_floats
from .work import LIGHT_SHARE, heavy_nodes

DTYPES = {"float16": ir.DataType.FLOAT16, "bfloat16": ir.DataType.BFLOAT16}

BFLOAT16_OPSET = 22
"""The first version in which convolutions, pooling and normalisations may be bfloat16."""


@dataclass
class Conversion:
    """What a conversion did."""

    dtype: str
    halves: list[str] = field(default_factory=list)
    """Nodes that compute in half precision."""
    exact: dict[str, str] = field(default_factory=dict)
    """Nodes that stay in float32, each with the reason."""
    casts: int = 0
    weight_bytes: tuple[int, int] = (0, 0)
    """Before and after."""
    calibrated: int = 0
    """Sample inputs that were run; without any, overflow goes unseen."""


def convert(
    model: ir.Model,
    dtype: str = "float16",
    *,
    calibration: Sequence[Feeds] | None = None,
    headroom: float = HEADROOM,
    light_share: float = LIGHT_SHARE,
    half_statistics: bool = False,
) -> tuple[ir.Model, Conversion]:
    """A copy of a graph that computes in half precision wherever that stays right.

    What feeds coordinates, sample weights, indices, exponentials, softmax and normalisation statistics stays float32
    (`tracing.exact_nodes`), as do values out of the type's range (`overflow`). Inputs and outputs keep their types.

    Args:
        model: prepared (`model.prepare`); not changed.
        dtype: "float16" or "bfloat16".
        calibration: inputs by name, to be run in float32 to see every value's range.
        headroom: factor between the largest magnitude seen and the type's largest number.
        light_share: see `work.heavy_nodes`.
        half_statistics: normalisations read and write half precision; right only where the runtime sums their
            statistics in float32, as cuDNN does.

    Raises:
        GraphError: an unknown `dtype`; bfloat16 and an operator whose meaning differs in operator set 22; sample
            inputs that do not fit.
    """
    if dtype not in DTYPES:
        raise GraphError(f"cannot convert to {dtype}; choose float16 or bfloat16")
    half = DTYPES[dtype]
    model = model.clone()
    if half == ir.DataType.BFLOAT16:
        _raise_opset(model, BFLOAT16_OPSET)
    report = Conversion(dtype, calibrated=len(calibration or ()))
    before = weight_bytes(model.graph)
    measured = magnitudes(model, calibration) if calibration else {}
    unfit = unfit_nodes(model, half, measured, headroom)
    heavy = heavy_nodes(model.graph, light_share)
    exact = exact_nodes(model, heavy, half, unfit, half_statistics=half_statistics)
    halves = {node for node in model.graph if node not in exact and touches_floats(node)}
    report.halves = [describe(node) for node in model.graph if node in halves]
    report.exact = {describe(node): exact[node] for node in model.graph if node in exact}
    report.casts = apply_precision(model, halves, half)
    report.weight_bytes = before, weight_bytes(model.graph)
    return model, report


def _raise_opset(model: ir.Model, opset: int) -> None:
    given = model.opset_imports[""]
    if given >= opset:
        return
    for node in model.graph:
        if node.domain:
            continue
        old, new = (onnx.defs.get_schema(node.op_type, version) for version in (given, opset))
        if _interface(old) != _interface(new):
            raise GraphError(
                f"{describe(node)} of {name_of(model)} changed between operator sets {given} and {opset}, "
                "and bfloat16 needs the later one; export the graph with it"
            )
    model.opset_imports[""] = opset


def _interface(schema: onnx.defs.OpSchema) -> tuple[object, ...]:
    return (
        [port.name for port in schema.inputs],
        [port.name for port in schema.outputs],
        {name: str(attribute.default_value) for name, attribute in schema.attributes.items()},
    )
