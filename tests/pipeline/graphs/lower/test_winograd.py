"""Minimal filtering: the same convolution, whatever the sizes and the padding."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.graphs.lower import winograd
from pipeline.graphs.lower.passes import Pass
from pipeline.graphs.lower.toom_cook import POINTS, filtering
from tests.pipeline.graphs.graphs import model, random, run
from tests.pipeline.graphs.lower.pictures import check, conv, operators, weights


@pytest.mark.parametrize(("outputs", "taps"), [(m, r) for m in range(1, 6) for r in range(1, 6) if m + r - 2 in POINTS])
def test_filtering_is_a_correlation(outputs: int, taps: int) -> None:
    made, w, x = filtering(outputs, taps), random([taps]), random([outputs + taps - 1], 1)
    found = made.output @ ((made.weight @ w) * (made.input @ x))
    np.testing.assert_allclose(found, np.correlate(x, w, "valid"), atol=1e-6)


@st.composite
def convolutions(draw: st.DrawFn) -> dict[str, Any]:
    kernel = draw(st.tuples(st.sampled_from([2, 3]), st.sampled_from([2, 3])))
    return {
        "kernel": kernel,
        "pads": draw(st.tuples(*[st.integers(0, 2)] * 4)),
        "shape": (draw(st.integers(1, 3)), draw(st.integers(1, 4)), draw(st.integers(3, 14)), draw(st.integers(3, 14))),
        "out": draw(st.integers(1, 5)),
        "bias": draw(st.booleans()),
        "second": draw(st.booleans()),
    }


@given(convolutions())
@settings(derandomize=True, deadline=None, max_examples=30)
def test_same_result(case: dict[str, Any]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(winograd, "pays", lambda convs: True)
        after, outcome = check(lambda: _graph(case), winograd.PASS)
    assert len(outcome.rewritten) == 1 + case["second"]
    assert operators(after).count("Conv") == 1


def _graph(case: dict[str, Any]) -> ir.Model:
    constants = {"w": weights(case["out"], case["shape"][1], *case["kernel"])}
    if case["bias"]:
        constants["b"] = random([case["out"]], 2)
    names = ["x", *constants]
    nodes = [conv(names, "y", pads=case["pads"])]
    outputs = ["y"]
    if case["second"]:
        constants["w2"] = weights(2, case["shape"][1], *case["kernel"], seed=3)
        nodes.append(conv(["x", "w2"], "z", pads=case["pads"]))
        outputs.append("z")
    return model(nodes, {"x": case["shape"]}, outputs, constants)


def test_error_is_near_that_of_the_direct_form() -> None:
    case = {"kernel": (3, 3), "pads": (1, 1, 1, 1), "shape": (1, 192, 32, 32), "out": 192, "bias": False}
    graph = _graph({**case, "second": False})
    x, w = random(case["shape"]), weights(192, 192, 3, 3).astype(np.float64)
    padded = np.pad(x[0].astype(np.float64), ((0, 0), (1, 1), (1, 1)))
    exact = sum(
        np.einsum("oc,chw->ohw", w[:, :, i, j], padded[:, i : i + 32, j : j + 32]) for i in range(3) for j in range(3)
    )
    assert winograd.PASS.apply(graph).rewritten
    error = np.abs(run(graph, {"x": x})["y"][0] - exact)
    assert error.mean() < 2e-6  # results have a standard deviation of 1
    assert error.max() < 2e-5


@pytest.mark.parametrize(
    ("attributes", "shape", "weight"),
    [
        ({"strides": [2, 2]}, (1, 4, 64, 64), (4, 4, 3, 3)),
        ({"dilations": [2, 2]}, (1, 4, 64, 64), (4, 4, 3, 3)),
        ({"group": 2}, (1, 4, 64, 64), (4, 2, 3, 3)),
        ({}, (1, 4, 64, 64), (4, 4, 5, 5)),
        ({}, (1, 4, 64, 64), (4, 4, 3, 1)),
        ({}, (1, 4, 64, 64, 64), (4, 4, 3, 3, 3)),
    ],
)
def test_others_are_left(attributes: dict[str, Any], shape: tuple[int, ...], weight: tuple[int, ...]) -> None:
    graph = model([conv(["x", "w"], "y", **attributes)], {"x": shape}, ["y"], {"w": weights(*weight)})
    outcome = winograd.PASS.apply(graph)
    assert not outcome.rewritten
    assert list(outcome.left) == ["Conv 'conv_y'"]
    assert operators(graph) == ["Conv"]


def test_weights_from_an_input_are_left() -> None:
    graph = model([conv(["x", "w"], "y")], {"x": (1, 64, 32, 32), "w": (64, 64, 3, 3)}, ["y"])
    assert winograd.PASS.apply(graph).left == {"Conv 'conv_y'": "its weights are not constant"}


def test_cost_decides() -> None:
    wide = model([conv(["x", "w"], "y")], {"x": (1, 256, 34, 34)}, ["y"], {"w": weights(128, 256, 3, 3)})
    narrow = model([conv(["x", "w"], "y")], {"x": (1, 8, 34, 34)}, ["y"], {"w": weights(8, 8, 3, 3)})
    few = model([conv(["x", "w"], "y")], {"x": (1, 256, 6, 6)}, ["y"], {"w": weights(128, 256, 3, 3)})
    step: Pass = winograd.PASS
    assert [bool(step.apply(graph).rewritten) for graph in (wide, narrow, few)] == [True, False, False]
