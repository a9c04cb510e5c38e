"""Sums in another order: the same function, and really another order."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx
import pytest
from onnx import helper

from pipeline.graphs.reorder import reorder_sums
from tests.pipeline.graphs.graphs import assert_same, model, random, run

Case = tuple[onnx.NodeProto, dict[str, Sequence[int]], dict[str, np.ndarray]]


def node(operator: str, *inputs: str, **attributes: object) -> onnx.NodeProto:
    return helper.make_node(operator, inputs, ["y"], **attributes)


CASES: dict[str, Case] = {
    "conv": (node("Conv", "x", "w", "b"), {"x": [1, 7, 5, 5]}, {"w": random([3, 7, 2, 2]), "b": random([3])}),
    "conv3d": (node("Conv", "x", "w"), {"x": [2, 5, 3, 4, 4]}, {"w": random([3, 5, 3, 3, 1])}),
    "grouped": (node("Conv", "x", "w", group=2), {"x": [1, 8, 5, 5]}, {"w": random([4, 4, 2, 2])}),
    "made weights": (node("Conv", "x", "w"), {"x": [1, 6, 5, 5], "w": [2, 6, 3, 3]}, {}),
    "transposed": (node("ConvTranspose", "x", "w"), {"x": [1, 6, 4, 4]}, {"w": random([6, 3, 2, 2])}),
    "transposed, grouped": (
        node("ConvTranspose", "x", "w", group=2),
        {"x": [2, 60, 6, 6]},
        {"w": random([60, 2, 2, 2])},
    ),
    "matmul": (node("MatMul", "x", "w"), {"x": [2, 3, 9]}, {"w": random([9, 4])}),
    "matmul of two": (node("MatMul", "x", "w"), {"x": [2, 3, 9], "w": [2, 9, 4]}, {}),
    "matmul, vector": (node("MatMul", "x", "w"), {"x": [30, 90], "w": [90]}, {}),
    "gemm": (node("Gemm", "x", "w"), {"x": [3, 9]}, {"w": random([9, 4])}),
    "gemm, transposed": (node("Gemm", "x", "w", transA=1, transB=1), {"x": [9, 3]}, {"w": random([4, 9])}),
    "sum": (node("ReduceSum", "x", "a"), {"x": [3, 9, 7]}, {"a": np.array([-1, 1])}),
    "mean of all": (node("ReduceMean", "x"), {"x": [13, 29, 17]}, {}),
    "pool": (node("GlobalAveragePool", "x"), {"x": [2, 3, 9, 7]}, {}),
}


@pytest.mark.parametrize("name", CASES)
def test_same_function_in_another_order(name: str) -> None:
    operator, inputs, constants = CASES[name]
    before, after = (model([operator], inputs, ["y"], constants) for _ in range(2))
    assert reorder_sums(after, 1) == 1
    feeds = {name: random(shape, seed) for seed, (name, shape) in enumerate(inputs.items())}
    wanted, found = run(before, feeds), run(after, feeds)
    assert_same(wanted, found, tolerance=1e-6)
    assert (wanted["y"] != found["y"]).any()


@pytest.mark.parametrize(
    ("operator", "shape"),
    [
        (node("Relu", "x"), [2, 3]),
        (node("ReduceMax", "x"), [2, 3]),
        (node("ReduceSum", "x", noop_with_empty_axes=1), [2, 3]),
        (node("Conv", "x", "w", group=4), [1, 4, 3, 3]),
    ],
    ids=["elementwise", "no sum", "sum over nothing", "one term a group"],
)
def test_what_has_no_order_stays(operator: onnx.NodeProto, shape: list[int]) -> None:
    constants = {"w": random([4, 1, 1, 1])} if operator.op_type == "Conv" else {}
    graph = model([operator], {"x": shape}, ["y"], constants)
    assert reorder_sums(graph, 1) == 0
    assert [n.op_type for n in graph.graph] == [operator.op_type]


def test_a_seed_is_an_order() -> None:
    operator, inputs, constants = CASES["conv"]
    feeds = {"x": random(inputs["x"])}
    made = []
    for seed in (1, 1, 2):
        graph = model([operator], inputs, ["y"], constants)
        reorder_sums(graph, seed)
        made.append(run(graph, feeds)["y"])
    np.testing.assert_array_equal(made[0], made[1])
    assert (made[0] != made[2]).any()
