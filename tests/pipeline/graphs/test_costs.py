"""Operations, bytes and parameters against hand counts and the published totals."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
import pytest
from onnx import helper

from pipeline.graphs import standins
from pipeline.graphs.costs import node_cost, parameters
from pipeline.graphs.model import prepare
from tests.pipeline.graphs.graphs import model, random

F32 = 4


def cost_of(node, inputs, constants=None, opset=20):
    return node_cost(list(model([node], inputs, ["y"], constants, opset=opset).graph)[-1])


@pytest.mark.parametrize(
    ("build", "megaparams", "gflop"),
    [
        (standins.appearance, 0.84, 64),
        (standins.warping_part, 45.5, 342),
        (standins.spade_part, 55.4, 892),
    ],
    ids=["appearance", "warping", "spade"],
)
def test_published_totals(build, megaparams, gflop):
    graph = prepare(ir.from_proto(build(standins.FULL, standins.AbsentWeights())))
    costs = [node_cost(node) for node in graph.graph]
    assert parameters(graph) / 1e6 == pytest.approx(megaparams, rel=0.01)
    assert sum(cost.flops for cost in costs) / 1e9 == pytest.approx(gflop, rel=0.01)
    assert all(cost.bytes is not None for cost in costs)


def test_grouped_conv_of_three_axes():
    weight = random((6, 2, 3, 3, 3))
    node = helper.make_node("Conv", ["x", "w", "b"], ["y"], group=2, pads=[1] * 6)
    cost = cost_of(node, {"x": [2, 4, 5, 6, 7]}, {"w": weight, "b": random((6,))})
    made = 2 * 6 * 5 * 6 * 7
    assert cost.flops == made * (2 * 2 * 27 + 1)
    assert cost.bytes == F32 * (2 * 4 * 210 + weight.size + 6 + made)


def test_conv_transpose_counts_a_multiply_add_for_each_input_and_tap():
    node = helper.make_node("ConvTranspose", ["x", "w"], ["y"], strides=[2, 2])
    assert cost_of(node, {"x": [1, 3, 4, 4]}, {"w": random((3, 5, 2, 2))}).flops == 2 * 48 * 5 * 4


def test_products():
    assert cost_of(helper.make_node("MatMul", ["x", "w"], ["y"]), {"x": [2, 3, 4]}, {"w": random((4, 5))}).flops == 240
    gemm = helper.make_node("Gemm", ["x", "w", "c"], ["y"], transA=1)
    assert cost_of(gemm, {"x": [4, 3]}, {"w": random((4, 5)), "c": random((5,))}).flops == 15 * 9
    einsum = helper.make_node("Einsum", ["x", "w"], ["y"], equation="bik,kj->bij")
    assert cost_of(einsum, {"x": [2, 3, 4]}, {"w": random((4, 5))}).flops == 240


@pytest.mark.parametrize(("mode", "taps"), [("nearest", 1), ("linear", 8)])
def test_grid_sample(mode, taps):
    node = helper.make_node("GridSample", ["x", "g"], ["y"], mode=mode)
    cost = cost_of(node, {"x": [1, 7, 4, 4, 4], "g": [1, 2, 3, 5, 3]})
    assert cost.flops == 30 * (15 + taps) + (7 * 30 * 2 * taps if taps > 1 else 0)


def test_a_view_moves_nothing_and_a_slice_only_what_it_takes():
    reshape = helper.make_node("Reshape", ["x", "s"], ["y"])
    assert cost_of(reshape, {"x": [4, 6]}, {"s": np.array([24])}).bytes == 0
    slices = helper.make_node("Slice", ["x", "a", "b"], ["y"])
    cost = cost_of(slices, {"x": [100, 100]}, {"a": np.array([0]), "b": np.array([2])})
    assert cost.bytes == 2 * 2 * 100 * F32 + 16


def test_an_operator_it_does_not_know_has_bytes_and_no_operations():
    graph = prepare(
        ir.from_proto(
            helper.make_model(
                helper.make_graph(
                    [helper.make_node("Secret", ["x"], ["y"], domain="other")],
                    "g",
                    [helper.make_tensor_value_info("x", 1, [3])],
                    [helper.make_tensor_value_info("y", 1, [5])],
                ),
                opset_imports=[helper.make_opsetid("", 20), helper.make_opsetid("other", 1)],
            )
        )
    )
    assert node_cost(next(iter(graph.graph))) == type(node_cost(next(iter(graph.graph))))(None, 32)


def test_parameters_are_told_by_their_role():
    nodes = [
        helper.make_node("Conv", ["x", "w", "b"], ["c"]),
        helper.make_node("Mul", ["c", "scale"], ["m"]),
        helper.make_node("Add", ["m", "grid"], ["y"]),
    ]
    constants = {"w": random((3, 2, 1, 1)), "b": random((3,)), "scale": random((1, 3, 1, 1)), "grid": random((4, 4))}
    assert parameters(model(nodes, {"x": [1, 2, 4, 4]}, ["y"], constants)) == 6 + 3 + 3
