"""Upcasting: float32 throughout, the same function, whatever held half precision."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper

from pipeline.graphs.convert import convert, has_halves, upcast
from pipeline.graphs.model import prepare
from tests.pipeline.graphs.graphs import assert_same, model, random, run

HALF = TensorProto.FLOAT16

UNARY = ("Relu", "Sigmoid", "Tanh", "Neg", "Exp", "Softmax", "LeakyRelu")
BINARY = ("Add", "Mul", "Sub", "Max")


@st.composite
def programs(draw: st.DrawFn) -> list[tuple[str, Any]]:
    """Operators on a stack of values [2, 4]."""
    steps: list[tuple[str, Any]] = []
    for _ in range(draw(st.integers(1, 8))):
        kind = draw(st.sampled_from(("unary", "binary", "matmul", "to half", "to float")))
        chosen = {"unary": UNARY, "binary": BINARY}.get(kind, (0, 1, 2))
        steps.append((kind, draw(st.sampled_from(chosen))))
    return steps


def program(steps: list[tuple[str, Any]], dtype: int) -> onnx.ModelProto:
    """A graph that computes in float16 but where it was cast to float32; `dtype`: of its input and output."""
    nodes, constants, kinds = [], {}, [dtype]
    value = "x"

    def add(operator: str, inputs: list[str], **attributes: Any) -> str:
        nodes.append(helper.make_node(operator, inputs, [f"v{len(nodes)}"], **attributes))
        return f"v{len(nodes) - 1}"

    for kind, chosen in steps:
        now = kinds[-1]
        name = f"c{len(constants)}_{now}"
        half = np.float16 if now == HALF else np.float32
        if kind == "unary":
            value = add(chosen, [value])
        elif kind == "binary":
            constants[name] = random([2, 4], len(nodes)).astype(half)
            value = add(chosen, [value, name])
        elif kind == "matmul":
            constants[name] = (random([4, 4], chosen) / 3).astype(half)
            value = add("MatMul", [value, name])
        else:
            kinds.append(HALF if kind == "to half" else TensorProto.FLOAT)
            value = add("Cast", [value], to=kinds[-1])
    nodes.append(helper.make_node("Cast", [value], ["y"], to=dtype))
    graph = helper.make_graph(
        nodes,
        "random",
        [helper.make_tensor_value_info("x", dtype, [2, 4])],
        [helper.make_tensor_value_info("y", dtype, [2, 4])],
        [onnx.numpy_helper.from_array(array, name) for name, array in constants.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)


def halves_inside(graph: ir.Model) -> list[str]:
    """Values in half precision, but for the boundary's."""
    boundary = {*graph.graph.inputs, *graph.graph.outputs}
    values = [*graph.graph.initializers.values(), *(value for node in graph.graph for value in node.outputs)]
    return [str(v.name) for v in values if v.dtype in (ir.DataType.FLOAT16, ir.DataType.BFLOAT16) and v not in boundary]


@settings(max_examples=25, deadline=None, database=None, derandomize=True)
@given(programs(), st.sampled_from((HALF, TensorProto.FLOAT)))
def test_random_graphs_stay_the_same_up_to_rounding(steps: list[tuple[str, Any]], dtype: int) -> None:
    source = program(steps, dtype)
    graph = prepare(ir.from_proto(source))
    upcast(graph)
    assert halves_inside(graph) == []
    x = {"x": random([2, 4]).astype(np.float16 if dtype == HALF else np.float32)}
    wanted = run(source, x)["y"].astype(np.float32)
    np.testing.assert_allclose(
        run(graph, x)["y"].astype(np.float32), wanted, rtol=2e-2, atol=2e-2 * np.abs(wanted).max()
    )
    assert [value.dtype for value in (*graph.graph.inputs, *graph.graph.outputs)] == [ir.DataType(dtype)] * 2


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_it_undoes_a_conversion(dtype: str) -> None:
    nodes = [
        helper.make_node("Conv", ["x", "w", "b"], ["c"], pads=[1] * 4),
        helper.make_node("Relu", ["c"], ["r"]),
        helper.make_node("Conv", ["r", "v"], ["d"], pads=[1] * 4),
        helper.make_node("Softmax", ["d"], ["y"], axis=1),
    ]
    constants = {"w": random([16, 4, 3, 3]) / 6, "b": random([16]), "v": random([8, 16, 3, 3]) / 12}
    source = model(nodes, {"x": [1, 4, 12, 12]}, ["y"], constants)
    graph, report = convert(source, dtype)
    assert has_halves(graph)
    done = upcast(graph)
    assert not has_halves(graph)
    assert done.casts == report.casts > 0
    assert done.weight_bytes[1] == 2 * done.weight_bytes[0]
    assert [node.op_type for node in graph.graph] == ["Conv", "Relu", "Conv", "Softmax"]
    # What is left is the rounding of weights, none of values.
    for value in source.graph.initializers.values():
        kind = np.float16 if dtype == "float16" else ir.DataType.BFLOAT16.numpy()
        if value.name in constants:
            rounded = value.const_value.numpy().astype(kind).astype(np.float32)  # type: ignore[union-attr]
            value.const_value = ir.tensor(rounded, name=value.name)
    x = {"x": random([1, 4, 12, 12])}
    assert_same(run(source, x), run(graph, x), tolerance=1e-6 if dtype == "float16" else 2e-3)


def test_types_that_attributes_state() -> None:
    fill = helper.make_tensor("fill", HALF, [1], [0.5])
    nodes = [
        helper.make_node("ConstantOfShape", ["shape"], ["half"], value=fill),
        helper.make_node("EyeLike", ["half"], ["eye"], dtype=HALF),
        helper.make_node("Cast", ["n"], ["given"], to=HALF),  # integers to half
        helper.make_node("Add", ["eye", "given"], ["sum"]),
        helper.make_node("Cast", ["sum"], ["y"], to=TensorProto.INT32),
    ]
    graph = helper.make_graph(
        nodes,
        "attributes",
        [
            helper.make_tensor_value_info("n", TensorProto.INT64, [3, 3]),
            helper.make_tensor_value_info("shape", TensorProto.INT64, [2]),
        ],
        [helper.make_tensor_value_info("y", TensorProto.INT32, [3, 3])],
    )
    source = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
    made = prepare(ir.from_proto(source))
    assert upcast(made).casts == 0
    assert halves_inside(made) == []
    feeds = {"n": np.arange(9).reshape(3, 3), "shape": np.array([3, 3])}
    assert (run(made, feeds)["y"] == np.arange(9).reshape(3, 3) + np.eye(3, dtype=np.int32)).all()


def test_what_is_not_known_keeps_half_precision_between_casts() -> None:
    nodes = [
        helper.make_node("Cast", ["x"], ["h"], to=HALF),
        helper.make_node("Custom", ["h", "w"], ["c"], domain="elsewhere", name="custom"),
        helper.make_node("Mul", ["c", "w"], ["m"]),
        helper.make_node("Cast", ["m"], ["y"], to=TensorProto.FLOAT),
    ]
    graph = helper.make_graph(
        nodes,
        "custom",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [4])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [4])],
        [onnx.numpy_helper.from_array(np.ones(4, np.float16), "w")],
        value_info=[helper.make_tensor_value_info("c", HALF, [4])],
    )
    opsets = [helper.make_opsetid("", 20), helper.make_opsetid("elsewhere", 1)]
    made = prepare(ir.from_proto(helper.make_model(graph, opset_imports=opsets, ir_version=10)))
    assert upcast(made).kept == ["Custom 'custom'"]
    order = [(node.op_type, [v.dtype for v in node.inputs if v], node.outputs[0].dtype) for node in made.graph]
    half, full = ir.DataType.FLOAT16, ir.DataType.FLOAT
    assert ("Custom", [half, half], half) in order
    assert ("Mul", [full, full], full) in order
