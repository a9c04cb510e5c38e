"""Convolutions that WebGPU gets wrong, with channels it reads right: the same numbers, and nothing else touched."""

from __future__ import annotations

from typing import Any

import onnx_ir as ir
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.graphs.lower.channels_by_four import PASS, read_by_threes
from pipeline.graphs.targets import target
from tests.pipeline.graphs.graphs import model, random
from tests.pipeline.graphs.lower.pictures import check, conv, operators, weights


def _graph(channels: int, out: int, kernel: tuple[int, ...], *, known: bool = True, **attributes: Any) -> ir.Model:
    """A convolution of constant weights, or of weights that are an input."""
    sizes = {"x": (2, channels, *(7, 6)[: len(kernel)])}
    shape = (out, channels // attributes.get("group", 1), *kernel)
    constants = {"b": random([out], 2)} | ({"w": weights(*shape)} if known else {})
    node = conv(["x", "w", "b"], "y", **attributes)
    return model([node], sizes if known else {**sizes, "w": shape}, ["y"], constants)


@given(
    st.sampled_from([2, 3, 6, 8, 9, 12, 15, 18, 21, 22]),
    st.sampled_from([3, 4, 8]),
    st.lists(st.integers(1, 3), min_size=1, max_size=2),
    st.integers(0, 1),
    st.integers(1, 2),
    st.booleans(),
)
@settings(derandomize=True, deadline=None, max_examples=40)
def test_same_result(channels: int, out: int, kernel: list[int], pad: int, stride: int, known: bool) -> None:
    axes = len(kernel)
    attributes = {"pads": [pad] * 2 * axes, "strides": [stride] * axes}
    after, outcome = check(lambda: _graph(channels, out, tuple(kernel), known=known, **attributes), PASS)
    product = set(kernel) == {1} and (pad, stride) == (0, 1)
    by_threes = channels in (6, 9, 15, 18, 21) and out % 4 == 0 and not product
    assert bool(outcome.rewritten) is by_threes
    assert operators(after).count("Pad") == (2 - known if by_threes else 0)
    assert not any(read_by_threes(node) for node in after.graph)
    assert [target("webgpu").lacks(node, 19) for node in after.graph] == [None] * len(list(after.graph))


@pytest.mark.parametrize("group", [2, 6])
def test_groups_stay(group: int) -> None:
    _, outcome = check(lambda: _graph(18, 24, (3, 3), group=group), PASS)
    assert outcome.rewritten == []
