"""Frames one after another in one run give what they give in runs of their own."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import NodeProto
from onnx.helper import make_node

from pipeline.errors import GraphError
from pipeline.graphs.lower.passes import run_passes
from pipeline.graphs.lower.unrolling import unroll_pass
from tests.pipeline.graphs.graphs import model, random, run

OPERATORS = {
    "Relu": lambda a, b, out: make_node("Relu", [a], [out]),
    "Add": lambda a, b, out: make_node("Add", [a, b], [out]),
    "MatMul": lambda a, b, out: make_node("MatMul", [a, b], [out]),
    "Softmax": lambda a, b, out: make_node("Softmax", [a], [out], axis=-1),
    "Conv": lambda a, b, out: make_node("Conv", [a, "w"], [out], pads=[1] * 4),
}
SHAPES = {"still": [1, 2, 5, 5], "x": [1, 2, 5, 5], "z": [1, 2, 5, 5]}


@st.composite
def graphs(draw: st.DrawFn) -> list[NodeProto]:
    """Random nodes, each of values before it; the outputs are y, of all, and q, of the first node alone."""
    values, nodes = [*SHAPES], []
    for number in range(draw(st.integers(2, 7))):
        make = OPERATORS[draw(st.sampled_from(sorted(OPERATORS)))]
        nodes.append(make(*(draw(st.sampled_from(values)) for _ in "ab"), f"v{number}"))
        values.append(f"v{number}")
    return [*nodes, make_node("Sum", values, ["y"]), make_node("Neg", ["v0"], ["q"])]


@settings(max_examples=15, deadline=None, derandomize=True)
@given(graphs(), st.sampled_from([["x"], ["z"], ["x", "z"]]), st.integers(2, 4))
def test_frames_are_those_of_runs_of_their_own(nodes: list[NodeProto], batched: list[str], count: int) -> None:
    constants = {"w": random([2, 2, 3, 3], 9)}
    frames = [
        {name: random(shape, 10 * frame + place if name in batched else place)
         for place, (name, shape) in enumerate(SHAPES.items())}
        for frame in range(count)
    ]  # fmt: skip
    many = model(nodes, SHAPES, ["y", "q"], constants)
    run_passes(many, [unroll_pass(count, batched)])
    joined = frames[0] | {name: np.concatenate([frame[name] for frame in frames]) for name in batched}
    found = run(many, joined)
    for name in ("y", "q"):
        each = [run(model(nodes, SHAPES, ["y", "q"], constants), frame)[name] for frame in frames]
        if len(found[name]) == 1:  # it depends on nothing that is batched
            each = each[:1]
        np.testing.assert_allclose(found[name], np.concatenate(each), rtol=1e-4, atol=1e-5)


def test_what_is_the_same_for_all_frames_is_computed_once() -> None:
    nodes = [make_node("Relu", ["still"], ["s"]), make_node("Add", ["s", "x"], ["y"])]
    many = model(nodes, {name: SHAPES[name] for name in ("still", "x")}, ["y"])
    outcome = run_passes(many, [unroll_pass(3, ["x"])])["unroll"]
    assert sorted(node.op_type for node in many.graph) == ["Add"] * 3 + ["Concat", "Relu", "Split"]
    assert outcome.rewritten == ["1 of 2 nodes, 3 times"]
    assert [list(value.shape) for value in (*many.graph.inputs, *many.graph.outputs)] == [
        [1, 2, 5, 5], [3, 2, 5, 5], [3, 2, 5, 5],
    ]  # fmt: skip


def test_an_unknown_input_and_one_without_axes_are_named() -> None:
    graph = model([make_node("Relu", ["x"], ["y"])], {"x": []}, ["y"])
    with pytest.raises(GraphError, match="no input z to batch; the graph has x"):
        run_passes(graph, [unroll_pass(2, ["z"])])
    with pytest.raises(GraphError, match="x has no axis to join 2 frames to"):
        run_passes(graph, [unroll_pass(2, ["x"])])
