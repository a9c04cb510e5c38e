"""A prologue and its step give what the whole graph gave."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
import pytest
from onnx import helper

from pipeline.errors import GraphError
from pipeline.graphs.costs import node_cost
from pipeline.graphs.lower import masked_softmax
from pipeline.graphs.lower.hoist import invariant_nodes, split
from pipeline.graphs.lower.passes import run_passes
from pipeline.graphs.model import load, prepare, static_shape
from tests.pipeline.graphs.graphs import assert_same, model, random, run

FRAMES, WIDTH = 6, 8


def denoiser(mask: np.ndarray) -> ir.Model:
    """Queries from the motion, keys and values from the sound, scores masked."""
    nodes = [
        helper.make_node("MatMul", ["motion", "wq"], ["q"]),
        helper.make_node("MatMul", ["audio", "wk"], ["k"]),
        helper.make_node("MatMul", ["audio", "wv"], ["v"]),
        helper.make_node("Transpose", ["k"], ["kt"], perm=[0, 2, 1]),
        helper.make_node("MatMul", ["q", "kt"], ["scores"]),
        helper.make_node("Add", ["scores", "mask"], ["masked"]),
        helper.make_node("Softmax", ["masked"], ["attention"]),
        helper.make_node("MatMul", ["attention", "v"], ["seen"]),
        helper.make_node("MatMul", ["seen", "wo"], ["out"]),
        helper.make_node("Add", ["motion", "out"], ["y"]),
    ]
    weights = {name: random((WIDTH, WIDTH), seed) for seed, name in enumerate(["wq", "wk", "wv", "wo"])}
    shape = [2, FRAMES, WIDTH]
    return model(nodes, {"motion": shape, "audio": shape}, ["y"], {**weights, "mask": mask})


def diagonal() -> np.ndarray:
    return np.where(np.eye(FRAMES, dtype=bool), 0, -np.inf).astype(np.float32)


def run_split(graph: ir.Model, loop_inputs: list[str], feeds: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    prologue, step = split(graph, loop_inputs)
    carried = run(prologue, feeds)
    return run(step, {**feeds, **carried})


def flops(graph: ir.Model) -> int:
    return sum(node_cost(node).flops or 0 for node in graph.graph)


def feeds_of(graph: ir.Model) -> dict[str, np.ndarray]:
    return {
        str(value.name): np.abs(random(static_shape(value), seed)).astype(value.dtype.numpy())
        for seed, value in enumerate(graph.graph.inputs)
    }


def test_keys_and_values_leave_the_loop():
    graph = denoiser(np.zeros((FRAMES, FRAMES), np.float32))
    feeds = feeds_of(graph)
    _, step = split(graph, ["motion"])
    assert [node.op_type for node in step.graph if node.op_type == "Softmax"] == ["Softmax"]
    assert step.graph.inputs[0].name == "motion"
    assert "audio" not in {v.name for v in step.graph.inputs}
    assert_same(run(graph, feeds), run_split(graph, ["motion"], feeds), tolerance=0)


def test_attention_with_a_diagonal_mask_leaves_the_loop_whole():
    graph = denoiser(diagonal())
    feeds = feeds_of(graph)
    before = run(graph, feeds)
    outcome = run_passes(graph, [masked_softmax.PASS])["masked-softmax"]
    assert len(outcome.rewritten) == 1
    assert not outcome.left
    assert_same(before, run(graph, feeds))
    prologue, step = split(graph, ["motion"])
    assert [node.op_type for node in step.graph] == ["Add"]
    assert [node.op_type for node in prologue.graph] == ["MatMul", "MatMul"]
    assert_same(before, run_split(graph, ["motion"], feeds))


@pytest.mark.parametrize(
    ("mask", "why"),
    [(np.zeros((FRAMES, FRAMES), np.float32), "more or fewer"), (np.full((FRAMES, FRAMES), -np.inf), "more or fewer")],
    ids=["open", "closed"],
)
def test_another_mask_is_left_alone(mask, why):
    graph = denoiser(mask.astype(np.float32))
    outcome = masked_softmax.apply(graph)
    assert not outcome.rewritten
    assert all(why in reason for reason in outcome.left.values())
    assert len(outcome.left) == 1


def test_a_cheap_node_with_a_large_result_is_computed_anew():
    nodes = [
        helper.make_node("MatMul", ["audio", "w"], ["small"]),
        helper.make_node("Expand", ["small", "shape"], ["large"]),
        helper.make_node("Mul", ["large", "motion"], ["y"]),
    ]
    constants = {"w": random((8, 8)), "shape": np.array([512, 8])}
    graph = model(nodes, {"motion": [512, 8], "audio": [1, 8]}, ["y"], constants)
    prologue, step = split(graph, ["motion"])
    assert [node.op_type for node in prologue.graph] == ["MatMul"]
    assert [node.op_type for node in step.graph] == ["Expand", "Mul"]
    feeds = feeds_of(graph)
    assert_same(run(graph, feeds), run_split(graph, ["motion"], feeds), tolerance=0)


def test_a_steady_output_is_the_prologues():
    nodes = [helper.make_node("MatMul", ["audio", "w"], ["a"]), helper.make_node("Add", ["a", "motion"], ["y"])]
    graph = model(nodes, {"motion": [2, 4], "audio": [2, 4]}, ["y", "a"], {"w": random((4, 4))})
    prologue, step = split(graph, ["motion"])
    assert [v.name for v in prologue.graph.outputs] == ["a"]
    assert [v.name for v in step.graph.outputs] == ["y"]


def test_embedded_denoiser():
    graph = prepare(load("pipeline/packs/embedded/denoiser.onnx"))
    loop = ["motion", "step"]
    feeds = feeds_of(graph)
    prologue, step = split(graph, loop)
    assert flops(step) < flops(graph)
    assert {v.name for v in prologue.graph.inputs} <= {v.name for v in graph.graph.inputs} - set(loop)
    assert_same(run(graph, feeds), run_split(graph, loop, feeds), tolerance=1e-6)


def test_what_cannot_be_split_is_refused():
    graph = denoiser(diagonal())
    with pytest.raises(GraphError, match="no input sound"):
        invariant_nodes(graph, ["sound"])
    with pytest.raises(GraphError, match="nothing in"):
        split(graph, ["motion", "audio"])
    steady = model(
        [helper.make_node("Neg", ["x"], ["y"]), helper.make_node("Abs", ["z"], ["unused"])], {"x": [4], "z": [4]}, ["y"]
    )
    with pytest.raises(GraphError, match="run it once"):
        split(steady, ["z"])
