"""Operators without a kernel on WebGPU, by others: the same numbers, bit for bit, and what the table says of both."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto
from onnx.helper import make_node

from pipeline.graphs.lower.passes import run_passes
from pipeline.graphs.lower.spelled import FOLDS, OPERATORS, PASS, SINGLE
from pipeline.graphs.targets import target
from tests.pipeline.graphs.graphs import model, run

SHAPES = {"a": (2, 1, 3), "b": (4, 1), "c": (1, 2, 4, 3)}
FINITE = [0.0, -0.0, 0.5, -0.5, 1.5, 2.5, -2.5, 0.49999997, -0.49999997, 8388607.5, -8388609.0, 1e30, -1e30, 3e38]


def numbers(shape: tuple[int, ...], seed: int) -> np.ndarray:
    """Near and far numbers, and those where rounding turns."""
    rng = np.random.default_rng(seed)
    kinds = (rng.uniform(-3, 3, shape), rng.integers(-9, 9, shape) / 2, rng.choice(FINITE, shape))
    return np.choose(rng.integers(0, len(kinds), shape), kinds).astype(np.float32)


@given(kind=st.sampled_from(sorted(OPERATORS)), count=st.integers(1, 3), seed=st.integers(0, 9999))
@settings(derandomize=True, deadline=None, max_examples=50)
def test_the_same_numbers(kind: str, count: int, seed: int) -> None:
    names = list(SHAPES)[: 1 if kind in SINGLE else count]
    graph = model([make_node(kind, names, ["y"])], {name: SHAPES[name] for name in names}, ["y"])
    feeds = {name: numbers(SHAPES[name], seed + index) for index, name in enumerate(names)}
    if kind in ("Sum", "Mean"):
        feeds = {name: np.clip(array, -1e9, 1e9) for name, array in feeds.items()}
    before = run(graph, feeds)["y"]
    outcome = run_passes(graph, [PASS])[PASS.name]
    assert (len(outcome.rewritten), outcome.left) == (1, {})
    after = run(graph, feeds)["y"]
    assert after.shape == before.shape
    np.testing.assert_array_equal(after, before)


def test_it_is_what_the_target_lacks_and_has() -> None:
    webgpu = target("webgpu")
    for kind in OPERATORS:
        names = list(SHAPES)[: 1 if kind in SINGLE else 3]
        graph = model([make_node(kind, names, ["y"])], {name: SHAPES[name] for name in names}, ["y"], opset=19)
        assert [webgpu.lacks(node, 19) for node in graph.graph] == ["no kernel"]
        run_passes(graph, [PASS])
        assert [webgpu.lacks(node, 19) for node in graph.graph] == [None] * len(list(graph.graph))


@pytest.mark.parametrize("kind", sorted(FOLDS))
def test_other_types_are_left(kind: str) -> None:
    nodes = [
        make_node("Cast", ["a"], ["double"], to=TensorProto.DOUBLE),
        make_node(kind, ["double", "double"], ["both"]),
        make_node("Cast", ["both"], ["y"], to=TensorProto.FLOAT),
    ]
    graph = model(nodes, {"a": (2, 3)}, ["y"])
    outcome = run_passes(graph, [PASS])[PASS.name]
    assert list(outcome.left.values()) == ["only float32"]
    assert [node.op_type for node in graph.graph] == ["Cast", kind, "Cast"]
    assert graph.graph.node(1).outputs[0].dtype == ir.DataType.DOUBLE
