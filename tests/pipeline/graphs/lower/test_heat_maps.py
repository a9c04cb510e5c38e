"""Exponentials of sums over coordinates: the same maps by one factor an axis, and what is not provable stays."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import helper

from pipeline.graphs.lower import heat_maps
from pipeline.graphs.lower.passes import Outcome, run_passes
from tests.pipeline.graphs.graphs import assert_same, model, random, run

SQUARES = {
    "Pow": helper.make_node("Pow", ["offset", "two"], ["square"]),
    "Mul": helper.make_node("Mul", ["offset", "offset"], ["square"]),
    "Abs": helper.make_node("Abs", ["offset"], ["square"]),
}


def lower(graph: ir.Model) -> Outcome:
    return run_passes(graph, [heat_maps.PASS])["separable-exp"]


def maps(
    batch: int,
    points: int,
    size: tuple[int, ...],
    *,
    square: str = "Pow",
    first: bool = False,
    keep: int = 0,
    turn: np.ndarray | None = None,
    scale: float = -0.5,
) -> ir.Model:
    """exp(scale · Σ (grid - point)² / 0.1) on a grid [1, 1, *size, coordinates], or the coordinates at axis 2."""
    axes = np.meshgrid(*[np.linspace(-1, 1, length) for length in size], indexing="ij")
    grid = np.stack(axes[::-1], -1)[None, None]
    grid = grid if turn is None else grid @ turn
    where, shape = -1, [batch, points, *[1] * len(size), len(size)]
    if first:
        grid, where, shape = np.moveaxis(grid, -1, 2), 2, [batch, points, len(size), *[1] * len(size)]
    nodes = [
        helper.make_node("Reshape", ["point", "shape"], ["spread"]),
        helper.make_node("Sub", ["grid", "spread"], ["offset"]),
        SQUARES[square],
        helper.make_node("ReduceSum", ["square", "axis"], ["distance"], keepdims=keep),
        helper.make_node("Mul", ["distance", "half"], ["halved"]),
        helper.make_node("Div", ["halved", "variance"], ["power"]),
        helper.make_node("Exp", ["power"], ["out"]),
    ]
    constants = {
        "grid": grid.astype(np.float32),
        "shape": np.asarray(shape),
        "axis": np.asarray([where]),
        "two": np.float32(2),
        "half": np.float32(scale),
        "variance": np.float32(0.1),
    }
    used = {name for node in nodes for name in node.input}
    kept = {name: array for name, array in constants.items() if name in used}
    return model(nodes, {"point": (batch, points, len(size))}, ["out"], kept)


@given(
    batch=st.integers(1, 2),
    points=st.integers(1, 3),
    size=st.lists(st.integers(8, 12), min_size=2, max_size=3).map(tuple),
    square=st.sampled_from(sorted(SQUARES)),
    first=st.booleans(),
    keep=st.integers(0, 1),
    scale=st.sampled_from((-0.5, -40.0, 0.25)),
    seed=st.integers(0, 99),
)
@settings(derandomize=True, deadline=None, max_examples=15)
def test_maps_are_the_same(
    batch: int,
    points: int,
    size: tuple[int, ...],
    square: str,
    first: bool,
    keep: int,
    scale: float,
    seed: int,
) -> None:
    graph = maps(batch, points, size, square=square, first=first, keep=keep, scale=scale)
    feeds = {"point": random((batch, points, len(size)), seed) * 0.7}
    before = run(graph, feeds)
    outcome = lower(graph)
    assert (len(outcome.rewritten), outcome.left) == (1, {})
    assert_same(before, run(graph, feeds))
    exponentials = [np.prod(list(node.outputs[0].shape)) for node in graph.graph if node.op_type == "Exp"]
    assert len(exponentials) == len(size)
    assert sum(exponentials) * 4 <= before["out"].size
    assert "ReduceSum" not in [node.op_type for node in graph.graph]


def test_far_points_give_zero_not_nan() -> None:
    graph = maps(1, 2, (8, 8, 8), scale=-40.0)
    feeds = {"point": np.asarray([[[1e3, 0, 0], [1e20, -1e20, 1e20]]], np.float32)}
    assert len(lower(graph).rewritten) == 1
    assert not run(graph, feeds)["out"].any()


def test_rotated_coordinates_stay() -> None:
    turn = np.linalg.qr(random((3, 3), 1))[0]
    outcome = lower(graph := maps(1, 2, (8, 8, 8), turn=turn))
    assert outcome.rewritten == []
    assert "few axes" in outcome.left["Exp 'out'"]
    assert [node.op_type for node in graph.graph].count("ReduceSum") == 1


def test_rotation_about_one_axis_gives_two_factors_of_a_plane() -> None:
    graph = maps(1, 2, (9, 9, 9), turn=np.float32([[0.8, 0.6, 0], [-0.6, 0.8, 0], [0, 0, 1]]))
    feeds = {"point": random((1, 2, 3), 4)}
    before = run(graph, feeds)
    assert len(lower(graph).rewritten) == 1
    assert_same(before, run(graph, feeds))


def test_summands_of_both_signs_stay() -> None:
    # exp(90) exp(-90) is infinite times zero in float32, though exp(0) is 1.
    nodes = [
        helper.make_node("Sub", ["grid", "point"], ["offset"]),
        helper.make_node("ReduceSum", ["offset", "axis"], ["distance"], keepdims=0),
        helper.make_node("Exp", ["distance"], ["out"]),
    ]
    grid = np.stack(np.meshgrid(*[np.linspace(-1, 1, 9)] * 2, indexing="ij"), -1).astype(np.float32)
    graph = model(nodes, {"point": (1, 1, 2)}, ["out"], {"grid": grid, "axis": np.asarray([-1])})
    outcome = lower(graph)
    assert outcome.rewritten == []
    assert "one sign" in outcome.left["Exp 'out'"]


@pytest.mark.parametrize("size", [(2, 2), (3, 2, 2)])
def test_nothing_is_gained_on_small_grids(size: tuple[int, ...]) -> None:
    graph = maps(1, 1, size)
    assert lower(graph).rewritten == []
    assert [node.op_type for node in graph.graph].count("Exp") == 1
