"""The reverse of `convert`: a graph with half-precision parts becomes one that computes in float32 throughout.

A CPU provider has few kernels of half precision and casts around each node at every run; here the weights are cast
once. Every half-precision number is a float32 number, so the function is the same but for the rounding of values in
between, which is gone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import onnx
import onnx_ir as ir

from ..lower.editing import Editor
from ..model import clean, describe
from ..shapes import infer_node
from .casts import weight_bytes

HALVES = (ir.DataType.FLOAT16, ir.DataType.BFLOAT16)

TYPE_ATTRIBUTES = ("to", "dtype", "output_dtype", "stash_type")
"""Attributes that state a type (Cast, EyeLike, RandomNormal, ...)."""


@dataclass
class Upcast:
    """What was done."""

    nodes: list[str] = field(default_factory=list)
    """Nodes that read or made half precision and are float32 now."""
    casts: int = 0
    """Casts that had nothing left to do."""
    kept: list[str] = field(default_factory=list)
    """Nodes of unknown meaning, which keep half precision between casts."""
    weight_bytes: tuple[int, int] = (0, 0)
    """Before and after."""


def has_halves(model: ir.Model) -> bool:
    """Whether a prepared graph holds constants or values in half precision."""
    values = [*model.graph.inputs, *model.graph.initializers.values()]
    values += [value for node in model.graph for value in node.outputs]
    return any(value.dtype in HALVES for value in values)


def upcast(model: ir.Model) -> Upcast:
    """Let a prepared graph compute in float32 wherever it computes in half precision; in place.

    Inputs and outputs keep their types, with a cast beside each that is half precision.
    """
    made, graph = Upcast(), model.graph
    before = weight_bytes(graph)
    boundary = _narrow_outputs(model)
    given = {node: [None if value is None else value.dtype for value in node.inputs] for node in graph}
    for value in graph.initializers.values():
        _widen_constant(value)
    _widen_inputs(model, boundary)
    for node in list(graph):
        if node in boundary:
            continue
        halves = any(dtype in HALVES for dtype in (*given[node], *(value.dtype for value in node.outputs)))
        if not _is_known(node, model.opset_imports):
            if halves:
                made.kept.append(describe(node))
                _keep(model, node, given[node])
            continue
        made.nodes += [describe(node)] if halves else []
        _widen_attributes(node)
        infer_node(node, dict(model.opset_imports))
        source = node.inputs[0] if node.op_type == "Cast" and halves else None
        if source is not None and source.dtype == node.outputs[0].dtype:
            made.casts += 1
            Editor(model, before=node).replace([source])
    clean(model)
    made.weight_bytes = before, weight_bytes(graph)
    return made


def _is_known(node: ir.Node, opsets: dict[str, int]) -> bool:
    try:
        onnx.defs.get_schema(node.op_type, opsets[node.domain], node.domain)
    except (onnx.defs.SchemaError, KeyError):
        return False
    return True


def _float32(tensor: ir.TensorProtocol) -> ir.TensorProtocol:
    return ir.tensor(tensor.numpy().astype(np.float32), name=tensor.name)


def _widen_constant(value: ir.Value) -> None:
    if value.dtype in HALVES and value.const_value is not None:
        value.const_value = _float32(value.const_value)
        value.type = ir.TensorType(ir.DataType.FLOAT)


def _widen_attributes(node: ir.Node) -> None:
    for name, held in list(node.attributes.items()):
        if held.type == ir.AttributeType.TENSOR and held.value.dtype in HALVES:
            node.attributes[name] = ir.AttrTensor(name, _float32(held.value))
        elif name in TYPE_ATTRIBUTES and held.type == ir.AttributeType.INT and held.value in HALVES:
            node.attributes[name] = ir.AttrInt64(name, ir.DataType.FLOAT.value)


def _widen_inputs(model: ir.Model, boundary: set[ir.Node]) -> None:
    """A cast behind each input of the graph that is half precision."""
    first = next(iter(model.graph), None)
    for value in model.graph.inputs:
        if value.dtype not in HALVES or first is None:
            continue
        uses = list(value.uses())
        wide = Editor(model, before=first).op("Cast", value, to=ir.DataType.FLOAT.value)
        boundary.add(wide.producer())  # type: ignore[arg-type]
        for node, index in uses:
            node.replace_input_with(index, wide)


def _narrow_outputs(model: ir.Model) -> set[ir.Node]:
    """A cast before each output of the graph that is half precision; those nodes."""
    made = set()
    for index, value in enumerate(model.graph.outputs):
        maker = value.producer()
        if value.dtype not in HALVES or maker is None:
            continue
        name, value.name = value.name, f"{value.name}_wide"
        cast = ir.node("Cast", [value], attributes={"to": value.dtype.value}, name=f"{name}_narrow")
        model.graph.append(cast)
        infer_node(cast, dict(model.opset_imports))
        cast.outputs[0].name = name
        model.graph.outputs[index] = cast.outputs[0]
        made.add(cast)
    return made


def _keep(model: ir.Model, node: ir.Node, given: Sequence[ir.DataType | None]) -> None:
    """Casts around a node, so that it is given the types it was made for."""
    before = Editor(model, before=node)
    for index, (value, wanted) in enumerate(zip(node.inputs, given, strict=True)):
        if value is not None and wanted in HALVES and value.dtype != wanted:
            node.replace_input_with(index, before.op("Cast", value, to=wanted.value))
    for value in node.outputs:
        if value.dtype not in HALVES:
            continue
        uses = list(value.uses())
        wide = ir.node("Cast", [value], attributes={"to": ir.DataType.FLOAT.value}, name=f"{value.name}_cast")
        model.graph.insert_after(node, wide)
        wide.outputs[0].name = f"{value.name}_wide"
        infer_node(wide, dict(model.opset_imports))
        for user, index in uses:
            user.replace_input_with(index, wide.outputs[0])
