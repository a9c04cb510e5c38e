"""Presets on the small stand-in of the generator: the same picture, and what each promises."""

from __future__ import annotations

from collections import Counter

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx.helper import make_node

from pipeline.errors import GraphError
from pipeline.graphs.lower.presets import PRESETS, above_rank4, lower, volumetric
from pipeline.graphs.standins import SMALL, SeededWeights, generator, inputs
from pipeline.graphs.standins.keypoints import keypoints
from tests.pipeline.graphs.graphs import proto, random, run

KINDS = ("near", "typical", "far", "out")


@pytest.fixture(scope="module")
def source() -> bytes:
    return generator(SMALL, SeededWeights(1)).SerializeToString()


def fresh(source: bytes) -> ir.Model:
    return ir.from_proto(onnx.load_from_string(source))


@pytest.fixture(scope="module")
def pictures(source: bytes) -> dict[str, np.ndarray]:
    graph = fresh(source)
    return {kind: run(graph, inputs(SMALL, kind, 2))["out"] for kind in KINDS}


@pytest.mark.parametrize("preset", sorted(PRESETS))
def test_the_picture_stays_the_same(preset: str, source: bytes, pictures: dict[str, np.ndarray]) -> None:
    lowered = lower(fresh(source), preset).model
    for kind, wanted in pictures.items():
        found = run(lowered, inputs(SMALL, kind, 2))["out"]
        assert np.abs(found - wanted).max() < 6e-5
        assert np.abs(found - wanted).mean() < 3e-6


def test_gridsample_leaves_the_convolutions_as_they_are(source: bytes) -> None:
    graph = lower(fresh(source), "gridsample").model
    ranks = Counter(len(node.outputs[0].shape or ()) for node in graph.graph if node.op_type == "Conv")
    assert ranks[5] == 13
    assert not volumetric(graph)


@pytest.mark.parametrize("preset", [name for name, preset in PRESETS.items() if preset.remaining is above_rank4])
def test_rank4_leaves_nothing_above(preset: str, source: bytes) -> None:
    graph = lower(fresh(source), preset).model
    assert not above_rank4(graph)
    assert [value.name for value in graph.graph.inputs] == ["feature_3d", "kp_driving", "kp_source"]


@pytest.mark.parametrize("preset", ["rank4", "cpu"])
def test_several_key_frames_of_one_portrait_in_one_run(preset: str, source: bytes) -> None:
    feeds = inputs(SMALL, "typical", 3)
    driving = [keypoints(SMALL, "far", seed)[0] for seed in range(2)]
    graph = fresh(source)
    each = [run(graph, {**feeds, "kp_driving": one})["out"] for one in driving]
    lowered = lower(fresh(source), preset, batch=2, batched=["kp_driving"]).model
    assert not above_rank4(lowered)
    found = run(lowered, {**feeds, "kp_driving": np.concatenate(driving)})["out"]
    assert np.abs(found - np.concatenate(each)).max() < 6e-5


def test_what_cannot_be_lowered_is_refused_with_its_reason() -> None:
    nodes = [make_node("ConvTranspose", ["x", "w"], ["y"], name="up")]
    graph = ir.from_proto(proto(nodes, {"x": (1, 2, 3, 3, 3)}, ["y"], {"w": random((2, 2, 2, 2, 2))}))
    with pytest.raises(GraphError, match=r"cannot be lowered by rank4: .*ConvTranspose 'up': no rule"):
        lower(graph, "rank4")


def test_an_unknown_preset_is_named(source: bytes) -> None:
    with pytest.raises(GraphError, match="no preset 'fast'; choose one of gridsample, rank4, cpu"):
        lower(fresh(source), "fast")
