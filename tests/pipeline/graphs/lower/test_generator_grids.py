"""The grid passes on the small stand-in of the generator's warping part."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
import pytest

from pipeline.graphs.lower import deformation, heat_maps, separable_grid
from pipeline.graphs.lower.grid_sample import grid_sample
from pipeline.graphs.lower.passes import Pass, run_passes
from pipeline.graphs.model import prepare
from pipeline.graphs.standins import SMALL, SeededWeights, warping_part
from tests.pipeline.graphs.graphs import assert_same, run


def warping() -> ir.Model:
    return prepare(ir.from_proto(warping_part(SMALL, SeededWeights(0))))


def of_rank_5(graph: ir.Model, operator: str) -> int:
    return sum(node.op_type == operator and len(node.inputs[0].shape) == 5 for node in graph.graph)


@pytest.fixture(scope="module")
def frames() -> list[tuple[dict[str, np.ndarray], dict[str, np.ndarray]]]:
    """Inputs and outputs of the graph as it is: typical keypoints, and so far that most samples lie outside."""
    graph = warping()
    rng = np.random.default_rng(0)
    made = []
    for scale in (0.3, 3.0):
        feeds = {
            str(value.name): np.float32(rng.normal(size=tuple(value.shape)) * (1 if "feature" in value.name else scale))
            for value in graph.graph.inputs
        }
        made.append((feeds, run(graph, feeds)))
    return made


@pytest.mark.parametrize(
    "passes",
    [
        [grid_sample("slices")],
        [grid_sample("gather")],
        [separable_grid.PASS, deformation.PASS, heat_maps.PASS, grid_sample("gather")],
    ],
    ids=["slices", "gather", "all"],
)
def test_no_volume_is_sampled_and_the_frame_is_the_same(passes: list[Pass], frames: list) -> None:
    graph = warping()
    outcomes = run_passes(graph, passes)
    assert of_rank_5(graph, "GridSample") == 0
    assert of_rank_5(graph, "Conv") == 13
    assert not outcomes["grid-sample"].left
    for feeds, wanted in frames:
        assert_same(wanted, run(graph, feeds), tolerance=1e-4)  # far keypoints: the noise floor is 2e-4


def test_the_grids_of_all_keypoints_are_no_longer_made() -> None:
    graph = warping()
    outcomes = run_passes(graph, [separable_grid.PASS, deformation.PASS, heat_maps.PASS])
    assert [len(outcome.rewritten) for outcome in outcomes.values()] == [1, 1, 2]
    volume = next(value for value in graph.graph.inputs if value.name == "feature_3d")
    places = int(np.prod([int(length) for length in list(volume.shape)[2:]]))
    large = [
        value.name
        for node in graph.graph
        for value in node.outputs
        if value.shape[-1] == 3 and np.prod(list(value.shape)) > 3 * places
    ]
    assert large == []
