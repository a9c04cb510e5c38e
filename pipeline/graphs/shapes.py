"""Shape inference: of a whole graph, and of one new node."""

from __future__ import annotations

import onnx
import onnx_ir as ir
from onnx import shape_inference

INPUT_DATA_BYTES = 4096
"""Constants up to this size are shown to inference: shapes and axes are small, weights are not."""


def infer_shapes(model: ir.Model) -> None:
    """Give every value its type and shape, node by node, as far as inference knows; in place.

    Shapes already stated stay where inference knows nothing (operators of other domains).
    """
    for node in model.graph:
        infer_node(node, dict(model.opset_imports))


def infer_node(node: ir.Node, opsets: dict[str, int]) -> None:
    """Set type and shape of a node's outputs from its inputs'; nothing when its operator or an input's type is not
    known."""
    try:
        schema = onnx.defs.get_schema(node.op_type, opsets[node.domain], node.domain)
    except (onnx.defs.SchemaError, KeyError):
        return
    proto = ir.to_proto(node)
    types, data = {}, {}
    for value in node.inputs:
        if value is None:
            continue
        if value.type is None:
            return
        types[value.name or ""] = _type(value)
        if value.const_value is not None and value.const_value.nbytes <= INPUT_DATA_BYTES:
            data[value.name or ""] = ir.to_proto(value.const_value)
    imports = [onnx.helper.make_opsetid(domain, version) for domain, version in opsets.items()]
    found = shape_inference.infer_node_outputs(schema, proto, types, data, opset_imports=imports)
    for value in node.outputs:
        inferred = found.get(value.name or "")
        if inferred is None or not inferred.HasField("tensor_type"):
            continue
        read = ir.serde.deserialize_type_proto_for_type(inferred)
        shape = ir.serde.deserialize_type_proto_for_shape(inferred)
        value.type = read or value.type
        if shape is not None and (value.shape is None or value.shape.is_dynamic() or not shape.is_dynamic()):
            value.shape = shape


def known_shape(value: ir.Value) -> tuple[int, ...] | None:
    """The lengths of a value's axes, or None when one is not known."""
    if value.shape is None:
        return None
    sizes = tuple(size for size in value.shape if isinstance(size, int))
    return sizes if len(sizes) == len(value.shape) else None


def _type(value: ir.Value) -> onnx.TypeProto:
    assert value.type is not None
    proto = onnx.TypeProto()
    ir.serde.serialize_type_into(proto, value.type)
    if value.shape is not None:
        ir.serde.serialize_shape_into(proto, value.shape)
    return proto
