"""A lowered graph under the shapes it had."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import helper

from pipeline.errors import GraphError
from pipeline.graphs.lower.boundary import only_reshaped
from pipeline.graphs.lower.presets import above_rank4, above_rank4_inside, lower
from tests.pipeline.graphs.graphs import assert_same, model, random, run


def volumes() -> tuple[list[onnx.NodeProto], dict[str, list[int]], dict[str, np.ndarray]]:
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], pads=[1] * 6),
        helper.make_node("Relu", ["c"], ["y"]),
        helper.make_node("ReduceMean", ["c"], ["z"], keepdims=0),
    ]
    return nodes, {"x": [1, 4, 3, 5, 5]}, {"w": random([4, 4, 3, 3, 3]) / 10}


def test_inputs_and_outputs_keep_their_shapes_and_names() -> None:
    nodes, inputs, constants = volumes()
    source = model(nodes, inputs, ["y", "z"], constants)
    made = lower(source.clone(), "cpu", boundary=True).model
    graph = made.graph
    assert [list(value.shape or ()) for value in (*graph.inputs, *graph.outputs)] == [[1, 4, 3, 5, 5]] * 2 + [[]]
    assert [value.name for value in (*graph.inputs, *graph.outputs)] == ["x", "y", "z"]
    assert "talkreel.shapes" not in made.metadata_props
    assert set(above_rank4(made)) == {"x", "y"}
    assert above_rank4_inside(made) == []
    assert only_reshaped(graph.inputs[0])
    assert not only_reshaped(graph.outputs[1])
    feeds = {"x": random([1, 4, 3, 5, 5])}
    found, wanted = run(made, feeds), run(source, feeds)
    assert found["y"].shape == (1, 4, 3, 5, 5)
    assert_same(wanted, found)


def test_a_volume_inside_is_no_matter_of_the_boundary() -> None:
    nodes, inputs, constants = volumes()
    assert set(above_rank4_inside(model(nodes, inputs, ["y", "z"], constants))) >= {"x", "c", "y"}


def test_a_graph_that_has_no_volume_is_left_alone() -> None:
    source = model([helper.make_node("Relu", ["x"], ["y"])], {"x": [1, 4, 5, 5]}, ["y"])
    made = lower(source.clone(), "cpu", boundary=True).model
    assert [node.op_type for node in made.graph] == ["Relu"]
    with pytest.raises(GraphError, match="there is no preset"):
        lower(source, "none", boundary=True)
