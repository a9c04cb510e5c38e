"""Value numbering: what is proven equal is equal; picked elements are bit for bit those of the whole value."""

from __future__ import annotations

import numpy as np
import onnx
import onnx_ir as ir
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import helper

from pipeline.graphs.lower.dependence import Numbering, trace, varies
from pipeline.graphs.lower.editing import Editor
from pipeline.graphs.lower.picking import Picker
from tests.pipeline.graphs.graphs import model, random, run

A, B = (2, 1, 3), (2, 4, 1)


def chain(steps: list[str]) -> tuple[ir.Model, ir.Value]:
    """Moves and elementwise operators one after another on two inputs; the last value is the graph's output."""
    nodes: list[onnx.NodeProto] = [helper.make_node("Add", ["a", "b"], ["v0"])]
    constants: dict[str, np.ndarray] = {}
    for index, step in enumerate(steps):
        old, new = f"v{index}", f"v{index + 1}"
        parameters: list[str] = []
        if step in PARAMETERS:
            parameters = [f"c{index}"]
            constants[f"c{index}"] = PARAMETERS[step]
        if step == "Concat":
            parameters = [old]
        elif step == "Where":
            nodes.append(helper.make_node("Greater", [old, f"c{index}"], [f"m{index}"]))
            nodes.append(helper.make_node("Where", [f"m{index}", old, f"c{index}"], [new]))
            continue
        attributes = {"axis": 0} if step == "Concat" else {}
        nodes.append(helper.make_node(step, [old, *parameters], [new], **attributes))
    last = f"v{len(steps)}"
    nodes.append(helper.make_node("Identity", [last], ["kept"]))
    nodes.append(helper.make_node("Sqrt", ["kept"], ["out"]))
    graph = model(nodes, {"a": A, "b": B}, ["out"], constants)
    value = graph.graph.outputs[0].producer().inputs[0]
    return graph, value


PARAMETERS = {
    "Mul": np.float32([[[0.5]]]),
    "Where": np.float32(0.25),
    "Tile": np.asarray([1, 2, 1]),
    "Gather": np.asarray([1, 0, 1]),
    "Reshape": np.asarray([0, -1, 1]),
}

steps = st.lists(st.sampled_from(["Neg", "Reciprocal", "Concat", "Tile", "Gather", "Mul", "Where", "Reshape"]),
                 max_size=4)  # fmt: skip


def evaluated(graph: ir.Model, value: ir.Value, feeds: dict[str, np.ndarray]) -> np.ndarray:
    """A value inside a graph, made one of its outputs."""
    graph.graph.outputs.append(value)
    return run(graph, feeds)[str(value.name)]


@given(steps=steps, seed=st.integers(0, 99))
@settings(derandomize=True, deadline=None, max_examples=20)
def test_equal_numbers_mean_equal_elements(steps: list[str], seed: int) -> None:
    graph, value = chain(steps)
    numbers = Numbering().of(value)
    found = evaluated(graph, value, {"a": random(A, seed), "b": random(B, seed + 1)})
    assert numbers.shape == found.shape
    for number in np.unique(numbers):
        assert len(np.unique(found[numbers == number])) == 1


@given(steps=steps, seed=st.integers(0, 99))
@settings(derandomize=True, deadline=None, max_examples=20)
def test_picked_elements_are_those_of_the_whole(steps: list[str], seed: int) -> None:
    graph, value = chain(steps)
    size = Numbering().of(value).size
    chosen = np.random.default_rng(seed).integers(0, size, (3, 2))
    picked = Picker(Editor(graph, before=graph.graph.outputs[0].producer())).pick(value, chosen)
    graph.graph.outputs.append(picked)
    whole = evaluated(graph, value, feeds := {"a": random(A, seed), "b": random(B, seed + 1)})
    np.testing.assert_array_equal(run(graph, feeds)[str(picked.name)], whole.reshape(-1)[chosen])


def test_axes_that_a_value_varies_along() -> None:
    graph, value = chain([])
    assert varies(Numbering().of(value)) == (True, True, True)
    assert varies(Numbering().of(graph.graph.inputs[0])) == (True, False, True)
    graph, value = chain(["Tile"])
    numbers = Numbering().of(value)
    np.testing.assert_array_equal(numbers[:, :4], numbers[:, 4:])


def test_equal_elements_of_constants_are_seen() -> None:
    nodes = [
        helper.make_node("Concat", ["one", "x", "two"], ["joined"], axis=0),
        helper.make_node("Add", ["joined", "x"], ["out"]),
    ]
    constants = {"one": np.float32([1, 2]), "two": np.float32([2, 1])}
    graph = model(nodes, {"x": (1,)}, ["out"], constants)
    numbers = Numbering().of(graph.graph.outputs[0])
    assert numbers[0] == numbers[4]
    assert numbers[1] == numbers[3]
    assert len(set(numbers.tolist())) == 3


def test_a_move_is_traced_to_its_source() -> None:
    nodes = [
        helper.make_node("Transpose", ["a"], ["turned"], perm=[2, 0, 1]),
        helper.make_node("Tile", ["turned", "times"], ["out"]),
    ]
    graph = model(nodes, {"a": A}, ["out"], {"times": np.asarray([1, 1, 2])})
    feeds = {"a": random(A)}
    *_, (source, places) = trace(graph.graph.outputs[0])
    assert source is graph.graph.inputs[0]
    np.testing.assert_array_equal(feeds["a"].reshape(-1)[places], run(graph, feeds)["out"])
