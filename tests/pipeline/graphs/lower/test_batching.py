"""Several frames in one run give what the frames give one by one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import NodeProto
from onnx.helper import make_node

from pipeline.errors import GraphError
from pipeline.graphs.lower.batching import batch_pass
from pipeline.graphs.lower.passes import run_passes
from tests.pipeline.graphs.graphs import assert_same, model, random, run


def i64(*numbers: int) -> np.ndarray:
    return np.asarray(numbers, np.int64)


def mapped(
    nodes: Sequence[NodeProto],
    shapes: dict[str, Sequence[int]],
    batched: Sequence[str],
    constants: dict[str, np.ndarray] | None = None,
    *,
    outputs: Sequence[str] = ("y",),
    opset: int = 20,
    count: int = 3,
) -> None:
    """Check `count` frames in one run against as many runs; what is not batched stays the same in all."""
    feeds = {name: random(shape, index) for index, (name, shape) in enumerate(shapes.items())}
    frames = [
        feeds | {name: random(shapes[name], 10 + 7 * frame + index) for index, name in enumerate(batched)}
        for frame in range(count)
    ]
    one = model(nodes, shapes, outputs, constants, opset=opset)
    each = [run(one, frame) for frame in frames]
    many = model(nodes, shapes, outputs, constants, opset=opset)
    run_passes(many, [batch_pass(count, batched)])
    joined = feeds | {name: np.concatenate([frame[name] for frame in frames]) for name in batched}
    expected = {name: np.concatenate([found[name] for found in each]) for name in outputs}
    assert_same(expected, run(many, joined))


@pytest.mark.parametrize("batched", [["x"], ["z"], ["x", "z"]])
def test_arithmetic_with_and_without_a_batch(batched: list[str]) -> None:
    nodes = [
        make_node("Relu", ["z"], ["r"]),
        make_node("Sub", ["x", "r"], ["s"]),
        make_node("Unsqueeze", ["s", "two"], ["u"]),
        make_node("Mul", ["u", "c"], ["m"]),
        make_node("ReduceSum", ["m", "axes"], ["y"], keepdims=0),
        make_node("Softmax", ["m"], ["w"], axis=1),
    ]
    constants = {"two": i64(2), "c": random((2, 1, 4, 5)), "axes": i64(-1)}
    mapped(nodes, {"x": (1, 3, 5), "z": (1, 1, 5)}, batched, constants, outputs=("y", "w"))


@pytest.mark.parametrize("batched", [["x"], ["grid"], ["x", "grid"]])
def test_pictures(batched: list[str]) -> None:
    nodes = [
        make_node("Conv", ["x", "w"], ["c"], pads=[1] * 4),
        make_node("InstanceNormalization", ["c", "g", "h"], ["n"]),
        make_node("GridSample", ["n", "grid"], ["s"]),
        make_node("Resize", ["s", "", "", "size"], ["r"], mode="nearest"),
        make_node("AveragePool", ["r"], ["p"], kernel_shape=[2, 2], strides=[2, 2]),
        make_node("DepthToSpace", ["p"], ["y"], blocksize=2),
    ]
    constants = {"w": random((8, 2, 3, 3)), "g": random((8,), 3), "h": random((8,), 4), "size": i64(1, 8, 8, 8)}
    mapped(nodes, {"x": (1, 2, 5, 6), "grid": (1, 4, 4, 2)}, batched, constants)


@settings(derandomize=True, deadline=None, max_examples=15)
@given(st.permutations(range(4)), st.integers(-4, 3), st.booleans())
def test_axes(perm: list[int], axis: int, old: bool) -> None:
    shape = (1, 2, 3, 4)
    length = shape[perm[axis]]
    nodes = [
        make_node("Transpose", ["x"], ["t"], perm=perm),
        make_node("Concat", ["t", "k", "t"], ["j"], axis=axis),
        make_node("Slice", ["j", "zero", "most", "axis"], ["s"]),
        make_node("Split", ["j", "parts"], ["a", "b"], axis=axis),
        make_node("Gather", ["a", "zero"], ["g"], axis=axis),
        make_node("ReduceMax", ["b"], ["m"], axes=[axis])
        if old
        else make_node("ReduceMax", ["b", "axis"], ["m"], keepdims=1),
        make_node("Pad", ["s", "pads", ""], ["d"], mode="reflect"),
        make_node("Tile", ["d", "times"], ["e"]),
        make_node("Flatten", ["e"], ["f"], axis=1),
        make_node("MatMul", ["square", "row"], ["y"]),
        make_node("Reshape", ["f", "square_shape"], ["square"]),
        make_node("Expand", ["m", "wider"], ["row_before"]),
        make_node("Reshape", ["row_before", "row_shape"], ["row"]),
    ]
    nodes = [*nodes[:9], nodes[10], nodes[11], nodes[12], nodes[9]]
    moved = [shape[index] for index in perm]
    reduced = [1 if index == axis % 4 else size for index, size in enumerate(moved)]
    constants = {
        "k": random(moved, 5), "zero": i64(0), "most": i64(length), "axis": i64(axis), "parts": i64(length, 2 * length),
        "pads": i64(*[0] * 8), "times": i64(1, 1, 1, 2), "square_shape": i64(6, 8), "wider": i64(*reduced),
        "row_shape": i64(int(np.prod(reduced)), 1),
    }  # fmt: skip
    if int(np.prod(reduced)) != 8:
        constants["square_shape"] = i64(-1, int(np.prod(reduced)))
    mapped(nodes, {"x": shape}, ["x"], constants, outputs=("y", "g"), opset=16 if old else 20)


def test_an_unknown_input_and_an_operator_without_a_rule_are_named() -> None:
    nodes = [make_node("Einsum", ["x", "x"], ["y"], equation="ab,ac->bc")]
    with pytest.raises(GraphError, match="no input q to batch; the graph has x"):
        run_passes(model(nodes, {"x": (2, 3)}, ["y"]), [batch_pass(2, ["q"])])
    with pytest.raises(GraphError, match="Einsum 'y' cannot be mapped over a batch: no rule"):
        run_passes(model(nodes, {"x": (2, 3)}, ["y"]), [batch_pass(2, ["x"])])


def test_weights_that_depend_on_the_batch_are_refused() -> None:
    nodes = [make_node("Conv", ["x", "w"], ["y"])]
    with pytest.raises(GraphError, match="a parameter depends on the batch"):
        run_passes(model(nodes, {"x": (1, 2, 3, 3), "w": (2, 2, 1, 1)}, ["y"]), [batch_pass(2, ["w"])])
