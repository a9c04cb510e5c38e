"""Half precision emulated in float32."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import onnx_ir as ir
import pytest

from pipeline.graphs.convert import convert, emulated
from tests.pipeline.graphs.graphs import run

from .test_convert import conv_then, node, random


@pytest.fixture
def feeds():
    return {"x": random([1, 8, 8, 8], 5)}


def test_it_computes_what_the_half_graph_computes(feeds):
    half, _ = convert(conv_then(node("Sigmoid", ["h"], ["y"])))
    wide = emulated(half)
    assert all(value.dtype != ir.DataType.FLOAT16 for value in wide.graph.initializers.values())
    np.testing.assert_allclose(run(wide, feeds)["y"], run(half, feeds)["y"], atol=2e-3)


def test_every_half_value_is_rounded(feeds):
    half, report = convert(conv_then(node("Relu", ["h"], ["y"])), "bfloat16")
    assert report.halves == ["Conv 'h'"]
    found = run(emulated(half), feeds)["y"]
    assert (found == found.astype(ml_dtypes.bfloat16).astype(np.float32)).all()


def test_it_is_as_inexact_as_the_type(feeds):
    graph = conv_then(node("Relu", ["h"], ["y"]))
    wanted = run(graph, feeds)["y"]
    fine, coarse = (
        np.abs(run(emulated(convert(graph, t)[0]), feeds)["y"] - wanted).mean() for t in ("float16", "bfloat16")
    )
    assert 0 < fine < coarse < 0.02
    assert coarse / fine == pytest.approx(8, rel=0.5)  # 10 bits against 7


def test_a_float32_graph_stays_as_it_is(feeds):
    graph = conv_then(node("Relu", ["h"], ["y"]))
    same = emulated(graph)
    assert [each.op_type for each in same.graph] == [each.op_type for each in graph.graph]
    assert (run(same, feeds)["y"] == run(graph, feeds)["y"]).all()
