"""Mixtures of moved grids as matrix products: the same mixture, and what is not provable stays."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import helper

from pipeline.graphs.lower import deformation
from pipeline.graphs.lower.passes import Outcome, run_passes
from tests.pipeline.graphs.graphs import assert_same, model, random, run

SIZE = (3, 4, 5)


def lower(graph: ir.Model) -> Outcome:
    return run_passes(graph, [deformation.PASS])["deformation"]


def mixture(
    batch: int = 1,
    points: int = 2,
    *,
    normalised: int | None = 1,
    coordinates_first: bool = False,
    mask_first: bool = False,
    keep: int = 0,
    scaled: bool = False,
    bend: bool = False,
) -> ir.Model:
    """Σ_k mask_k grid_k over the identity grid and its translations, the mask a Softmax over axis `normalised`."""
    z, y, x = np.meshgrid(*[np.linspace(-1, 1, length) for length in SIZE], indexing="ij")
    identity = np.stack([x, y, z], -1)[None, None].astype(np.float32)
    slots = points + 1
    axes = [0, 5, 1, 2, 3, 4] if coordinates_first else [0, 1, 5, 2, 3, 4]
    summed, spread = (2, 1) if coordinates_first else (1, 2)
    nodes = [
        helper.make_node("Mul" if scaled else "Sub", ["identity", "driving"], ["centred"]),
        helper.make_node("Add", ["centred", "source"], ["moved"]),
        helper.make_node("Expand", ["identity", "once"], ["background"]),
        helper.make_node("Concat", ["background", "moved"], ["grids"], axis=1),
        helper.make_node("Transpose", ["grids"], ["bent" if bend else "turned"], perm=axes),
        *([helper.make_node("Sin", ["bent"], ["turned"])] if bend else []),
        helper.make_node(*(("Relu", ["logits"], ["mask"]) if normalised is None else ("Softmax", ["logits"], ["mask"])),
                         **({} if normalised is None else {"axis": normalised})),
        helper.make_node("Unsqueeze", ["mask", "spread"], ["weights"]),
        helper.make_node("Mul", ["weights", "turned"] if mask_first else ["turned", "weights"], ["weighted"]),
        helper.make_node("ReduceSum", ["weighted", "summed"], ["out"], keepdims=keep),
    ]  # fmt: skip
    constants = {
        "identity": identity,
        "once": np.asarray([batch, 1, *SIZE, 3]),
        "spread": np.asarray([spread]),
        "summed": np.asarray([summed]),
    }
    point = (batch, points, 1, 1, 1, 3)
    return model(nodes, {"driving": point, "source": point, "logits": (batch, slots, *SIZE)}, ["out"], constants)


def feeds(graph: ir.Model, seed: int, scale: float = 1.0) -> dict[str, np.ndarray]:
    found = {}
    for index, value in enumerate(graph.graph.inputs):
        found[str(value.name)] = random([int(n) for n in value.shape or ()], seed + index) * scale
    return found


@given(
    batch=st.integers(1, 3),
    points=st.integers(1, 4),
    normalised=st.sampled_from((1, 2, -1, None)),
    coordinates_first=st.booleans(),
    mask_first=st.booleans(),
    keep=st.integers(0, 1),
    scale=st.sampled_from((0.3, 20.0)),
    seed=st.integers(0, 99),
)
@settings(derandomize=True, deadline=None, max_examples=15)
def test_mixtures_are_the_same(
    batch: int,
    points: int,
    normalised: int | None,
    coordinates_first: bool,
    mask_first: bool,
    keep: int,
    scale: float,
    seed: int,
) -> None:
    graph = mixture(
        batch,
        points,
        normalised=normalised,
        coordinates_first=coordinates_first,
        mask_first=mask_first,
        keep=keep,
    )
    given_feeds = feeds(graph, seed, scale)
    before = run(graph, given_feeds)
    outcome = lower(graph)
    assert (len(outcome.rewritten), outcome.left) == (1, {})
    assert_same(before, run(graph, given_feeds))
    kinds = [node.op_type for node in graph.graph]
    # The sum of the mask is taken to be 1 where a Softmax over the very axis proves it, and only there.
    assert ("ReduceSum" in kinds) is (normalised != 1)
    assert "Transpose" not in kinds


@pytest.mark.parametrize("change", [{"scaled": True}, {"bend": True}])
def test_grids_that_are_not_moved_as_a_whole_stay(change: dict[str, bool]) -> None:
    graph = mixture(**change)
    before = [node.op_type for node in graph.graph]
    outcome = lower(graph)
    assert outcome.rewritten == []
    assert "moved as a whole" in outcome.left["ReduceSum 'out'"]
    assert [node.op_type for node in graph.graph] == before


def test_other_products_stay() -> None:
    nodes = [
        helper.make_node("Mul", ["a", "b"], ["product"]),
        helper.make_node("ReduceSum", ["product", "axis"], ["out"], keepdims=0),
    ]
    graph = model(nodes, {"a": (2, 3, 4), "b": (2, 3, 4)}, ["out"], {"axis": np.asarray([1])})
    assert "spread over one axis" in lower(graph).left["ReduceSum 'out'"]
