"""Sampling on translated identity grids: proven from the graph, the same samples, and what is not provable stays."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import helper

from pipeline.graphs.lower import separable_grid
from pipeline.graphs.lower.passes import Outcome, run_passes
from tests.pipeline.graphs.graphs import assert_same, model, random, run

Sizes = tuple[int, ...]


def identity(size: Sizes) -> np.ndarray:
    """[D, H, W, 3], x y z last, each 2i/(n-1) - 1."""
    axes = [2 * np.arange(n) / max(1, n - 1) - 1 for n in size]
    z, y, x = np.meshgrid(*axes, indexing="ij")
    return np.stack([x, y, z], -1).astype(np.float32)


def lower(graph: ir.Model) -> Outcome:
    return run_passes(graph, [separable_grid.PASS])["separable-grid-sample"]


def kinds(graph: ir.Model) -> set[str]:
    return {node.op_type for node in graph.graph}


def translations(batch: int, points: int, channels: int, size: Sizes, out: Sizes, align: int = 0) -> ir.Model:
    """One volume an element of the batch, sampled on the identity and on one translation of it a point."""
    slots = points + 1
    nodes = [
        helper.make_node("Reshape", ["driving", "each"], ["d"]),
        helper.make_node("Reshape", ["source", "each"], ["s"]),
        helper.make_node("Sub", ["identity", "d"], ["centred"]),
        helper.make_node("Add", ["centred", "s"], ["moved"]),
        helper.make_node("Expand", ["identity", "once"], ["background"]),
        helper.make_node("Concat", ["background", "moved"], ["grids"], axis=1),
        helper.make_node("Reshape", ["grids", "flat"], ["grid"]),
        helper.make_node("Unsqueeze", ["volume", "second"], ["single"]),
        helper.make_node("Tile", ["single", "repeats"], ["repeated"]),
        helper.make_node("Reshape", ["repeated", "volumes"], ["features"]),
        helper.make_node("GridSample", ["features", "grid"], ["out"], align_corners=align),
    ]
    constants = {
        "identity": identity(out)[None, None],
        "each": np.asarray([batch, points, 1, 1, 1, 3]),
        "once": np.asarray([batch, 1, *out, 3]),
        "flat": np.asarray([batch * slots, *out, -1]),
        "second": np.asarray([1]),
        "repeats": np.asarray([1, slots, 1, 1, 1, 1]),
        "volumes": np.asarray([batch * slots, -1, *size]),
    }
    inputs = {"volume": (batch, channels, *size), "driving": (batch, points, 3), "source": (batch, points, 3)}
    return model(nodes, inputs, ["out"], constants)


def keypoints(batch: int, points: int, seed: int) -> np.ndarray:
    """Near, and far enough to leave the volume on every side."""
    rng = np.random.default_rng(seed)
    scale = rng.choice([0.0, 0.2, 1.5, 1e4], (batch, points, 1), p=[0.1, 0.5, 0.3, 0.1])
    return (rng.normal(size=(batch, points, 3)) * scale).astype(np.float32)


@given(
    batch=st.integers(1, 3),
    points=st.integers(1, 3),
    channels=st.integers(1, 3),
    size=st.tuples(*[st.integers(1, 6)] * 3),
    out=st.tuples(*[st.integers(1, 6)] * 3),
    align=st.integers(0, 1),
    seed=st.integers(0, 999),
)
@settings(derandomize=True, deadline=None, max_examples=20)
def test_translations_give_the_same_samples(
    batch: int, points: int, channels: int, size: Sizes, out: Sizes, align: int, seed: int
) -> None:
    graph = translations(batch, points, channels, size, out, align)
    feeds = {
        "volume": random((batch, channels, *size), seed),
        "driving": keypoints(batch, points, seed),
        "source": keypoints(batch, points, seed + 1),
    }
    before = run(graph, feeds)
    outcome = lower(graph)
    assert (len(outcome.rewritten), outcome.left) == (1, {})
    assert_same(before, run(graph, feeds))
    assert all(len(value.shape or ()) <= 4 for node in graph.graph for value in node.outputs if value.name != "out")
    # Neither the grid nor the repeated volumes are made any more.
    assert not {"GridSample", "Tile"} & kinds(graph)


@given(
    size=st.tuples(*[st.integers(2, 5)] * 3),
    out=st.tuples(*[st.integers(2, 5)] * 3),
    planes=st.booleans(),
    seed=st.integers(0, 999),
)
@settings(derandomize=True, deadline=None, max_examples=15)
def test_any_grid_of_one_axis_a_coordinate_by_both_forms(size: Sizes, out: Sizes, planes: bool, seed: int) -> None:
    # x, y and z are functions of one axis each, put together in another way and order than by a translation.
    nodes = [
        helper.make_node("Tanh", ["xs"], ["bent"]),
        helper.make_node("Expand", ["bent", "shape"], ["x"]),
        helper.make_node("Transpose", ["ys"], ["column"], perm=[0, 2, 1]),
        helper.make_node("Reshape", ["column", "raised"], ["lifted"]),
        helper.make_node("Mul", ["lifted", "ones"], ["y"]),
        helper.make_node("Neg", ["y"], ["down"]),
        helper.make_node("Tile", ["zs", "times"], ["z"]),
        helper.make_node("Concat", ["z", "down", "x"], ["zyx"], axis=1),
        helper.make_node("Gather", ["zyx", "backwards"], ["xyz"], axis=1),
        helper.make_node("Transpose", ["xyz"], ["grid"], perm=[0, 2, 3, 4, 1]),
        helper.make_node("GridSample", ["volume", "grid"], ["out"]),
    ]
    depth, height, width = out
    constants = {
        "shape": np.asarray([2, 1, *out]),
        "raised": np.asarray([2, 1, 1, height, 1]),
        "ones": np.ones((1, 1, depth, 1, width), np.float32),
        "times": np.asarray([1, 1, 1, height, width]),
        "backwards": np.asarray([2, 1, 0]),
    }
    inputs = {
        "volume": (2, 2, *size),
        "xs": (1, 1, 1, 1, width),
        "ys": (2, 1, height),
        "zs": (2, 1, depth, 1, 1),
    }
    graph = model(nodes, inputs, ["out"], constants)
    feeds = {name: random(shape, seed + index) for index, (name, shape) in enumerate(inputs.items())}
    before = run(graph, feeds)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(separable_grid, "SAMPLE_COST", -(10**9) if planes else 10**9)
        assert len(lower(graph).rewritten) == 1
    assert_same(before, run(graph, feeds))
    assert ("GridSample" in kinds(graph)) is planes
    samplers = [node for node in graph.graph if node.op_type == "GridSample"]
    assert all(len(value.shape or ()) == 4 for node in samplers for value in node.inputs if value is not None)


def test_the_cheaper_form_is_chosen_by_size() -> None:
    small = translations(1, 1, 1, (4, 4, 4), (4, 4, 4))
    lower(small)
    assert "GridSample" not in kinds(small)
    wide = translations(1, 1, 1, (2, 1024, 2), (2, 1024, 2))
    lower(wide)
    assert "GridSample" in kinds(wide)


def sheared() -> tuple[list, dict, dict]:
    grid = identity((3, 4, 5))
    grid[..., 0] += 0.125 * grid[..., 1]
    nodes = [
        helper.make_node("Add", ["constant", "shift"], ["grid"]),
        helper.make_node("GridSample", ["volume", "grid"], ["out"]),
    ]
    return nodes, {"volume": (1, 1, 3, 4, 5), "shift": (1, 1, 1, 1, 3)}, {"constant": grid[None]}


def rotated() -> tuple[list, dict, dict]:
    nodes = [
        helper.make_node("MatMul", ["constant", "rotation"], ["grid"]),
        helper.make_node("GridSample", ["volume", "grid"], ["out"]),
    ]
    return nodes, {"volume": (1, 1, 3, 4, 5), "rotation": (3, 3)}, {"constant": identity((3, 4, 5))[None]}


def one_point_off() -> tuple[list, dict, dict]:
    nodes, inputs, _ = sheared()
    grid = identity((3, 4, 5))
    grid[2, 3, 4, 1] = np.nextafter(grid[2, 3, 4, 1], np.float32(2))
    return nodes, inputs, {"constant": grid[None]}


def given_from_outside() -> tuple[list, dict, dict]:
    node = helper.make_node("GridSample", ["volume", "grid"], ["out"])
    return [node], {"volume": (1, 1, 3, 4, 5), "grid": (1, 3, 4, 5, 3)}, {}


@pytest.mark.parametrize("build", [sheared, rotated, one_point_off, given_from_outside])
def test_what_is_not_provable_stays(build) -> None:
    nodes, inputs, constants = build()
    graph = model(nodes, inputs, ["out"], constants)
    before = [node.op_type for node in graph.graph]
    outcome = lower(graph)
    assert outcome.rewritten == []
    assert "not proven to depend on axis" in outcome.left["GridSample 'out'"]
    assert [node.op_type for node in graph.graph] == before


def test_other_paddings_stay() -> None:
    node = helper.make_node("GridSample", ["volume", "grid"], ["out"], padding_mode="border")
    graph = model([node], {"volume": (1, 1, 3, 4, 5)}, ["out"], {"grid": identity((3, 4, 5))[None]})
    assert "padding 'border'" in lower(graph).left["GridSample 'out'"]
