"""Convolutions with few outputs by shares of their taps."""

from __future__ import annotations

from typing import Any

import onnx_ir as ir
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.graphs.lower import few_outputs
from tests.pipeline.graphs.graphs import model, random
from tests.pipeline.graphs.lower.pictures import check, conv, operators, weights


@st.composite
def convolutions(draw: st.DrawFn) -> dict[str, Any]:
    shape = (draw(st.integers(1, 2)), draw(st.integers(1, 4)), draw(st.integers(7, 12)), draw(st.integers(7, 12)))
    return {
        "shape": shape,
        "weight": (draw(st.integers(1, 3)), shape[1], draw(st.integers(1, 4)), draw(st.integers(2, 4))),
        "attributes": {
            "pads": draw(st.tuples(*[st.integers(0, 3)] * 4)),
            "strides": draw(st.tuples(st.integers(1, 2), st.integers(1, 2))),
            "dilations": draw(st.tuples(st.integers(1, 2), st.integers(1, 2))),
        },
        "bias": draw(st.booleans()),
    }


def _graph(case: dict[str, Any]) -> ir.Model:
    constants = {"w": weights(*case["weight"])} | ({"b": random([case["weight"][0]], 2)} if case["bias"] else {})
    return model([conv(["x", *constants], "y", **case["attributes"])], {"x": case["shape"]}, ["y"], constants)


@given(convolutions())
@settings(derandomize=True, deadline=None, max_examples=30)
def test_same_result(case: dict[str, Any]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(few_outputs, "pays", lambda found: True)
        after, _ = check(lambda: _graph(case), few_outputs.PASS)
    assert "Conv" not in operators(after)


@pytest.mark.parametrize(
    ("shape", "weight", "attributes", "rewritten"),
    [
        ((1, 128, 32, 32), (1, 128, 7, 7), {"pads": [3] * 4}, True),
        ((1, 4, 32, 32), (1, 4, 3, 3), {"pads": [1] * 4}, False),
        ((1, 128, 32, 32), (16, 128, 7, 7), {"pads": [3] * 4}, False),
        ((1, 128, 32, 32), (1, 128, 1, 1), {}, False),
        ((1, 128, 32, 32), (2, 64, 7, 7), {"pads": [3] * 4, "group": 2}, False),
    ],
)
def test_cost_decides(
    shape: tuple[int, ...], weight: tuple[int, ...], attributes: dict[str, Any], rewritten: bool
) -> None:
    case = {"shape": shape, "weight": weight, "attributes": attributes, "bias": True}
    _, outcome = check(lambda: _graph(case), few_outputs.PASS)
    assert bool(outcome.rewritten) is rewritten
