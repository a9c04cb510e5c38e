"""Constant folding: nodes that depend on no input are computed once, here."""

from __future__ import annotations

import math

import numpy as np
import onnx
import onnx_ir as ir
from onnx.reference import ReferenceEvaluator

from .shapes import infer_node, known_shape

FOLD_BYTES = 64 << 20
"""A folded constant's greatest size; larger ones stay nodes, as a file should not grow without bound."""

RANDOM = frozenset(
    {"RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Multinomial", "Bernoulli"}
)


def fold_constants(model: ir.Model) -> int:
    """Replace every node whose inputs are all constant by its value; how many were. In place.

    `Shape` of a value with a known shape counts as constant, too.
    """
    folded = 0
    opsets = dict(model.opset_imports)
    for node in list(model.graph):
        if node.domain or node.op_type in RANDOM or len(node.outputs) != 1:
            continue
        infer_node(node, opsets)  # an input folded just now can make a shape known
        array = _shape_of(node) if node.op_type == "Shape" else _value_of(node, opsets)
        if array is None or array.nbytes > FOLD_BYTES:
            continue
        replace_by_constant(model.graph, node, array)
        folded += 1
    return folded


def replace_by_constant(graph: ir.Graph, node: ir.Node, array: np.ndarray) -> None:
    """Put an initializer in the place of a node's only output; a graph output keeps its name through Identity."""
    old = node.outputs[0]
    value = ir.Value(
        name=f"{old.name}_folded",
        type=ir.TensorType(ir.tensor(array).dtype),
        shape=ir.Shape(array.shape),
        const_value=ir.tensor(array, name=f"{old.name}_folded"),
    )
    graph.register_initializer(value)
    if old.is_graph_output():
        same = ir.node(
            "Identity", [value], outputs=[ir.Value(name=f"{old.name}_is", type=value.type, shape=value.shape)]
        )
        graph.insert_after(node, same)
        old.replace_all_uses_with(same.outputs[0], replace_graph_outputs=True)
        name = old.name
        old.name = f"{name}_was"
        same.outputs[0].name = name
    else:
        old.replace_all_uses_with(value)
    graph.remove(node, safe=True)


def _shape_of(node: ir.Node) -> np.ndarray | None:
    source = node.inputs[0]
    shape = None if source is None else known_shape(source)
    if shape is None:
        return None
    start, end = node.attributes.get("start"), node.attributes.get("end")
    return np.asarray(shape[start.as_int() if start else 0 : end.as_int() if end else len(shape)], np.int64)


def _value_of(node: ir.Node, opsets: dict[str, int]) -> np.ndarray | None:
    if not all(value is None or value.const_value is not None for value in node.inputs):
        return None
    shape = known_shape(node.outputs[0])
    if shape is not None and math.prod(shape) * 8 > FOLD_BYTES:
        return None
    inputs = [value for value in node.inputs if value is not None]
    graph = onnx.helper.make_graph(
        [ir.to_proto(node)],
        "fold",
        [],
        [onnx.helper.make_value_info(node.outputs[0].name or "", onnx.TypeProto())],
        [_named(value) for value in {id(value): value for value in inputs}.values()],
    )
    proto = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid(d, v) for d, v in opsets.items()])
    with np.errstate(all="ignore"):
        (array,) = ReferenceEvaluator(proto).run(None, {})
    return np.asarray(array)


def _named(value: ir.Value) -> onnx.TensorProto:
    assert value.const_value is not None
    proto = ir.to_proto(value.const_value)
    proto.name = value.name or ""
    return proto
