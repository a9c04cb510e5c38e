"""Slice and Pad at computed places, and integers between float32 numbers: the same bits without 64-bit integers."""

from __future__ import annotations

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto
from onnx.helper import make_node

from pipeline.graphs.lower import integers, windows
from pipeline.graphs.lower.intervals import interval
from pipeline.graphs.lower.passes import run_passes
from tests.pipeline.graphs.graphs import model, run

SHAPE = (2, 7, 9)


def place(low: float, high: list[float], rounding: str) -> tuple[list[onnx.NodeProto], dict[str, np.ndarray]]:
    """`start` int64 [2] from the input `where`, held between bounds."""
    nodes = [
        make_node("Clip", ["where", "low"], ["above"]),
        make_node("Min", ["above", "high"], ["held"]),
        *([make_node(rounding, ["held"], ["whole"])] if rounding else []),
        make_node("Cast", ["whole" if rounding else "held"], ["start"], to=TensorProto.INT64),
    ]
    return nodes, {"low": np.float32(low), "high": np.asarray(high, np.float32)}


def assert_no_integers(graph: ir.Model) -> None:
    """64-bit integers that depend on data are gone."""
    assert not [value.name for node in graph.graph for value in node.outputs if value.dtype == ir.DataType.INT64]


ROUNDINGS = st.sampled_from(("Round", "Floor", "Ceil", ""))


@given(size=st.tuples(st.integers(1, 7), st.integers(1, 9)), rounding=ROUNDINGS, seed=st.integers(0, 999))
@settings(derandomize=True, deadline=None, max_examples=20)
def test_a_window(size: tuple[int, int], rounding: str, seed: int) -> None:
    nodes, constants = place(0, [SHAPE[1] - size[0], SHAPE[2] - size[1]], rounding)
    nodes += [
        make_node("Add", ["start", "size"], ["end"]),
        make_node("Slice", ["x", "start", "end", "axes"], ["window"]),
        make_node("Reshape", ["window", "shape"], ["y"]),
    ]
    constants |= {"size": np.asarray(size), "axes": np.asarray([1, -1]), "shape": np.asarray([2, *size])}
    graph = model(nodes, {"x": SHAPE, "where": (2,)}, ["y"], constants)
    rng = np.random.default_rng(seed)
    feeds = {"x": rng.normal(size=SHAPE).astype(np.float32), "where": rng.uniform(-3, 12, 2).astype(np.float32)}
    before = run(graph, feeds)["y"]
    outcome = run_passes(graph, [windows.PASS])[windows.PASS.name]
    assert (len(outcome.rewritten), outcome.left) == (1, {})
    assert_no_integers(graph)
    np.testing.assert_array_equal(run(graph, feeds)["y"], before)


@given(value=st.sampled_from((None, 0.25)), rounding=ROUNDINGS, seed=st.integers(0, 999), fixed=st.integers(0, 2))
@settings(derandomize=True, deadline=None, max_examples=20)
def test_a_tensor_put_into_a_larger_one(value: float | None, rounding: str, seed: int, fixed: int) -> None:
    free = np.asarray([4, 6])
    nodes, constants = place(0, [4, 6], rounding)
    nodes += [
        make_node("Sub", ["free", "start"], ["after"]),
        make_node("Concat", ["fixed", "start", "zero", "after"], ["pads"], axis=0),
        make_node("Pad", ["x", "pads", *(["value"] if value is not None else [])], ["padded"]),
        make_node("Reshape", ["padded", "shape"], ["y"]),
    ]
    constants |= {"free": free, "fixed": np.asarray([fixed]), "zero": np.asarray([0])}
    constants["shape"] = np.asarray([2 + fixed, 7 + 4, 9 + 6])
    if value is not None:
        constants["value"] = np.float32(value)
    graph = model(nodes, {"x": SHAPE, "where": (2,)}, ["y"], constants)
    rng = np.random.default_rng(seed)
    feeds = {"x": rng.normal(size=SHAPE).astype(np.float32), "where": rng.uniform(-3, 9, 2).astype(np.float32)}
    before = run(graph, feeds)["y"]
    outcome = run_passes(graph, [windows.PASS])[windows.PASS.name]
    assert (len(outcome.rewritten), outcome.left) == (1, {})
    assert_no_integers(graph)
    np.testing.assert_array_equal(run(graph, feeds)["y"], before)


@given(rounding=ROUNDINGS, low=st.integers(-9, 0), seed=st.integers(0, 999), order=st.permutations([0, 1]))
@settings(derandomize=True, deadline=None, max_examples=20)
def test_integers_between_numbers(rounding: str, low: int, seed: int, order: list[int]) -> None:
    nodes, constants = place(low, [3.5, 90], rounding)
    nodes += [
        make_node("Gather", ["start", "order"], ["turned"]),
        make_node("Sub", ["offset", "turned"], ["moved"]),
        make_node("Cast", ["moved"], ["y"], to=TensorProto.FLOAT),
    ]
    constants |= {"order": np.asarray(order), "offset": np.asarray([1000, 2000])}
    graph = model(nodes, {"where": (2,)}, ["y"], constants)
    feeds = {"where": np.random.default_rng(seed).uniform(-20, 120, 2).astype(np.float32)}
    before = run(graph, feeds)["y"]
    outcome = run_passes(graph, [integers.PASS])[integers.PASS.name]
    assert (len(outcome.rewritten), outcome.left) == (1, {})
    assert_no_integers(graph)
    np.testing.assert_array_equal(run(graph, feeds)["y"], before)


def sliced(high: float, steps: int = 1, end: str = "end") -> ir.Model:
    nodes, constants = place(0, [high, high], "Round")
    nodes += [
        make_node("Add", ["start", "size"], ["end"]),
        make_node("Slice", ["x", "start", end, "axes", "steps"], ["y"]),
    ]
    constants |= {"size": np.asarray([4, 4]), "axes": np.asarray([1, 2]), "steps": np.asarray([steps, steps])}
    constants["all"] = np.asarray([9, 9])
    return model(nodes, {"x": SHAPE, "where": (2,)}, ["y"], constants)


@pytest.mark.parametrize(
    ("graph", "reason"),
    [
        (lambda: sliced(4), "its window is not proven to lie inside"),
        (lambda: sliced(3, steps=2), "its step is not 1"),
        (lambda: sliced(3, end="all"), "the size of its window depends on data"),
    ],
    ids=["over the edge", "steps", "size"],
)
def test_windows_that_are_left(graph: object, reason: str) -> None:
    made = graph()  # type: ignore[operator]
    before = [node.op_type for node in made.graph]
    outcome = run_passes(made, [windows.PASS])[windows.PASS.name]
    assert list(outcome.left.values()) == [reason]
    assert [node.op_type for node in made.graph] == before


def padded(mode: str, nodes: list[onnx.NodeProto]) -> ir.Model:
    nodes = [
        *nodes,
        make_node("Cast", ["float"], ["number"], to=TensorProto.INT64),
        make_node("Sub", ["free", "number"], ["after"]),
        make_node("Concat", ["number", "after"], ["pads"], axis=0),
        make_node("Pad", ["x", "pads", "", "axes"], ["y"], mode=mode),
    ]
    constants = {"free": np.asarray([3]), "axes": np.asarray([1]), "low": np.float32(0), "high": np.float32(3)}
    return model(nodes, {"x": SHAPE, "where": (1,)}, ["y"], constants)


@pytest.mark.parametrize(
    ("mode", "maker", "reason"),
    [
        ("edge", make_node("Clip", ["where", "low", "high"], ["float"]), "its mode is not 'constant'"),
        ("constant", make_node("Clip", ["where", "low"], ["float"]), "its place has no proven bounds"),
    ],
)
def test_pads_that_are_left(mode: str, maker: onnx.NodeProto, reason: str) -> None:
    graph = padded(mode, [maker])
    before = [node.op_type for node in graph.graph]
    outcome = run_passes(graph, [windows.PASS])[windows.PASS.name]
    assert list(outcome.left.values()) == [reason]
    assert [node.op_type for node in graph.graph] == before


def test_integers_without_bounds_are_left() -> None:
    nodes = [
        make_node("Cast", ["where"], ["whole"], to=TensorProto.INT64),
        make_node("Cast", ["whole"], ["y"], to=TensorProto.FLOAT),
    ]
    graph = model(nodes, {"where": (2,)}, ["y"])
    outcome = run_passes(graph, [integers.PASS])[integers.PASS.name]
    assert list(outcome.left.values()) == ["whole numbers that are not proven to be below 2^24 and made from float32"]


@given(seed=st.integers(0, 9999))
@settings(derandomize=True, deadline=None, max_examples=15)
def test_bounds_hold(seed: int) -> None:
    rng = np.random.default_rng(seed)
    nodes, last = [make_node("Clip", ["x", "low", "high"], ["v0"])], "v0"
    for index, kind in enumerate(
        rng.choice(["Add", "Sub", "Mul", "Min", "Max", "Round", "Floor", "Relu", "Gather"], 6)
    ):
        others = {"Gather": ["picked"], "Round": [], "Floor": [], "Relu": []}.get(
            kind, ["other" if index % 2 else "v0"]
        )
        nodes.append(make_node(kind, [last, *others], [f"v{index + 1}"]))
        last = f"v{index + 1}"
    constants = {
        "low": np.float32(-2), "high": np.float32(3), "picked": np.asarray([1, 0]),
        "other": rng.normal(size=2).astype(np.float32),
    }  # fmt: skip
    graph = model(nodes, {"x": (2,)}, [last], constants)
    bounds = interval(graph.graph.outputs[0])
    assert bounds is not None
    assert np.isfinite(bounds.low).all()
    for _ in range(5):
        found = run(graph, {"x": rng.uniform(-9, 9, 2).astype(np.float32)})[last]
        rounding = 1e-5 * (1 + np.abs(found))
        assert (bounds.low - rounding <= found).all()
        assert (found <= bounds.high + rounding).all()


def test_zero_times_what_has_no_bounds_has_none() -> None:
    nodes = [make_node("Clip", ["x", "low"], ["above"]), make_node("Mul", ["above", "factor"], ["y"])]
    constants = {"low": np.float32(1), "factor": np.asarray([0, 2], np.float32)}
    bounds = interval(model(nodes, {"x": (2,)}, ["y"], constants).graph.outputs[0])
    assert bounds is not None
    assert bounds.low.tolist() == [-np.inf, 2]
    assert bounds.high.tolist() == [np.inf, np.inf]
