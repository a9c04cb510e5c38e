"""Channels filled up for the fast kernel."""

from __future__ import annotations

from typing import Any

import onnx_ir as ir
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import helper

from pipeline.graphs.lower import pad_channels
from tests.pipeline.graphs.graphs import model, random
from tests.pipeline.graphs.lower.pictures import check, conv, operators, weights


def _graph(channels: int, out: int, attributes: dict[str, Any], *, joined: bool = False) -> ir.Model:
    constants = {"w": weights(out, channels, 3, 3), "b": random([out], 2)}
    if joined:
        nodes = [helper.make_node("Concat", ["x", "z"], ["j"], axis=1), conv(["j", "w", "b"], "y", **attributes)]
        return model(nodes, {"x": (1, channels - 5, 9, 8), "z": (1, 5, 9, 8)}, ["y"], constants)
    return model([conv(["x", "w", "b"], "y", **attributes)], {"x": (2, channels, 9, 8)}, ["y"], constants)


@given(
    st.integers(5, 21),
    st.integers(1, 3),
    st.tuples(*[st.integers(0, 2)] * 4),
    st.tuples(st.integers(1, 2), st.integers(1, 2)),
    st.tuples(st.integers(1, 2), st.integers(1, 2)),
    st.booleans(),
)
@settings(derandomize=True, deadline=None, max_examples=25)
def test_same_result(channels: int, out: int, pads: Any, strides: Any, dilations: Any, joined: bool) -> None:
    attributes = {"pads": pads, "strides": strides, "dilations": dilations}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pad_channels, "MIN_WORK", 0)
        after, outcome = check(lambda: _graph(channels, out, attributes, joined=joined), pad_channels.PASS)
    assert bool(outcome.rewritten) is bool(channels % 4)
    (made,) = (node for node in after.graph if node.op_type == "Conv")
    assert made.inputs[0] is not None
    assert int((made.inputs[0].shape or ())[1]) % 4 == 0  # type: ignore[arg-type]
    assert operators(after).count("Concat") <= 1  # the zeros join a Concat that is there


@pytest.mark.parametrize(
    ("channels", "out", "rewritten"), [(110, 64, True), (112, 64, False), (110, 8, False), (3, 64, False)]
)
def test_where_it_pays(channels: int, out: int, rewritten: bool) -> None:
    _, outcome = check(lambda: _graph(channels, out, {"pads": [1] * 4}), pad_channels.PASS)
    assert bool(outcome.rewritten) is rewritten
