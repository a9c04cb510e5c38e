"""Which convolutions may be quantised is told by tracing, on the stand-in and on its lowered form alike."""

from __future__ import annotations

import onnx_ir as ir
import pytest
from onnx import helper

from pipeline.graphs.lower.presets import lower
from pipeline.graphs.model import prepare
from pipeline.graphs.quantise.candidates import candidates
from pipeline.graphs.quantise.cut import tail
from pipeline.graphs.standins import SMALL, generator, spade_part, warping_part
from tests.pipeline.graphs.graphs import model, random

SPADE_CONVOLUTIONS = 74
AFTER_SAMPLING = 2
"""Convolutions that warping makes of the samples."""
BEFORE = 14
"""Of warping: compression, hourglass, mask, occlusion."""


def outputs(groups: list[list[ir.Node]]) -> list[str]:
    return [str(node.name) for group in groups for node in group]


def test_the_generator_is_quantised_after_sampling_only() -> None:
    left: dict[str, str] = {}
    found = outputs(candidates(prepare(ir.from_proto(generator(SMALL))), left))
    assert len(found) == SPADE_CONVOLUTIONS + AFTER_SAMPLING
    assert {name for name in found if name.startswith("warping")} == {"warping/third", "warping/fourth"}
    assert len(left) == BEFORE
    assert [why for name, why in left.items() if "occlusion" in name] == ["it works on values beside the samples"]


@pytest.mark.parametrize("preset", ["rank4", "gridsample"])
def test_lowering_changes_nothing_about_it(preset: str) -> None:
    lowered = lower(ir.from_proto(generator(SMALL)), preset).model
    found = outputs(candidates(lowered, {}))
    assert len(found) == SPADE_CONVOLUTIONS + AFTER_SAMPLING


def test_without_sampling_all_are_candidates_and_before_it_none() -> None:
    assert len(outputs(candidates(prepare(ir.from_proto(spade_part(SMALL))), {}))) == SPADE_CONVOLUTIONS
    warping = outputs(candidates(prepare(ir.from_proto(warping_part(SMALL))), {}))
    assert warping == ["warping/third", "warping/fourth"]


def test_convolutions_before_indices_and_softmaxes_stay() -> None:
    weights = {"w": random((4, 4, 1, 1)), "v": random((4, 4, 1, 1), 1)}
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["a"], name="before"),
        helper.make_node("Softmax", ["a"], ["b"], axis=1),
        helper.make_node("Conv", ["b", "v"], ["y"], name="after"),
    ]
    left: dict[str, str] = {}
    assert outputs(candidates(model(nodes, {"x": (1, 4, 6, 6)}, ["y"], weights), left)) == ["after"]
    assert len(left) == 1
    nodes[1:2] = [helper.make_node("Cast", ["a"], ["i"], to=7), helper.make_node("Cast", ["i"], ["b"], to=1)]
    assert outputs(candidates(model(nodes, {"x": (1, 4, 6, 6)}, ["y"], weights), {})) == ["after"]


def test_the_tail_begins_at_the_samples() -> None:
    whole = prepare(ir.from_proto(generator(SMALL)))
    part = tail(whole, [node for group in candidates(whole, {}) for node in group])
    assert len(part.graph.inputs) == 2  # the samples, and the occlusion map
    assert not any(node.op_type in ("GridSample", "Softmax") for node in part.graph)
    assert [value.name for value in part.graph.outputs] == ["out"]
    assert sum(node.op_type == "Conv" for node in part.graph) == SPADE_CONVOLUTIONS + AFTER_SAMPLING
