"""Lifetimes and plans of small graphs."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
import pytest
from onnx import helper

from pipeline.errors import GraphError
from pipeline.graphs import standins
from pipeline.graphs.model import load, prepare
from pipeline.graphs.order import run_order
from pipeline.graphs.plan import lifetimes, plan
from tests.pipeline.graphs.graphs import model, proto, random

PACK = "pipeline/packs/embedded"


def spans(graph, **options):
    return {b.name: (b.size, b.first, b.last) for b in lifetimes(graph, **options)}


def chain():
    return model(
        [
            helper.make_node("MatMul", ["x", "w"], ["a"]),
            helper.make_node("Relu", ["a"], ["b"]),
            helper.make_node("Reshape", ["b", "s"], ["c"]),
            helper.make_node("MatMul", ["c", "w"], ["y"]),
        ],
        {"x": [8, 4]},
        ["y"],
        {"w": random((4, 4)), "s": np.array([8, 4])},
    )


def test_element_wise_writes_in_place_and_a_view_shares():
    assert spans(chain()) == {"a": (128, 0, 3), "y": (128, 3, 3)}
    assert spans(chain(), in_place=False) == {"a": (128, 0, 1), "b": (128, 1, 3), "y": (128, 3, 3)}


def test_a_value_still_needed_is_not_written_over():
    nodes = [
        helper.make_node("Neg", ["x"], ["a"]),
        helper.make_node("Relu", ["a"], ["b"]),
        helper.make_node("Add", ["a", "b"], ["y"]),
    ]
    assert spans(model(nodes, {"x": [16]}, ["y"])) == {"a": (64, 0, 2), "b": (64, 1, 2), "y": (64, 2, 2)}


def test_nodes_run_just_before_they_are_needed():
    nodes = [
        helper.make_node("Neg", ["x"], ["late"]),
        helper.make_node("Abs", ["x"], ["a"]),
        helper.make_node("Exp", ["a"], ["b"]),
        helper.make_node("Add", ["late", "b"], ["y"]),
    ]
    assert [n.op_type for n in run_order(model(nodes, {"x": [4]}, ["y"]).graph)] == ["Abs", "Exp", "Neg", "Add"]


def test_full_size_generator_without_its_weights():
    made = plan(prepare(ir.from_proto(standins.generator(standins.FULL, standins.AbsentWeights()))))
    assert made.bound <= made.best.peak <= made.by_size.peak <= made.by_time.peak < made.without_reuse / 8
    assert made.best.peak == made.bound == 320 * 2**20


def test_a_window_at_a_place_that_depends_on_data_has_its_own_size():
    made = plan(prepare(load(f"{PACK}/generator_512.onnx")))
    assert made.bound <= made.best.peak < 16 * 2**20 < made.without_reuse
    report = made.to_json()
    assert report["search"] == made.best.peak
    assert made.steps[made.peak_step] == report["peak_node"]
    assert "most alive at once" in made.text()


def test_dimensions_take_their_stated_maximum():
    made = ir.from_proto(
        proto(
            [helper.make_node("Neg", ["x"], ["a"]), helper.make_node("Neg", ["a"], ["y"])], {"x": ["batch", 16]}, ["y"]
        )
    )
    assert plan(made, {"batch": 8}).without_reuse == 2 * 8 * 64
    with pytest.raises(GraphError, match="batch"):
        plan(made)
