"""Every rule of rank 4, alone and together, on random graphs: the same function, and no value above rank 4."""

from __future__ import annotations

import json
from collections.abc import Sequence

import numpy as np
import onnx_ir as ir
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import NodeProto
from onnx.helper import make_node

from pipeline.graphs.lower import conv3d, rank4
from pipeline.graphs.lower.passes import Outcome, Pass, run_passes
from pipeline.graphs.lower.rank import SHAPES_KEY
from tests.pipeline.graphs.graphs import assert_same, model, random, run

check = settings(derandomize=True, deadline=None, max_examples=15)

small = st.integers(1, 4)
volumes = st.tuples(st.integers(1, 2), st.integers(1, 4), st.integers(1, 5), st.integers(2, 6), st.integers(2, 6))
sixes = st.tuples(small, small, small, st.integers(1, 3), st.integers(1, 3), st.integers(1, 3))


def lowered(
    nodes: Sequence[NodeProto],
    shapes: dict[str, Sequence[int]],
    constants: dict[str, np.ndarray] | None = None,
    *,
    outputs: Sequence[str] = ("y",),
    opset: int = 20,
    step: Pass = rank4.PASS,
    tolerance: float = 2e-5,
) -> ir.Model:
    """Lower a graph, check that it is the same function with nothing left above rank 4, and give it back."""
    feeds = {name: random(shape, index) for index, (name, shape) in enumerate(shapes.items())}
    before = model(nodes, shapes, outputs, constants, opset=opset)
    expected = run(before, feeds)
    after = model(nodes, shapes, outputs, constants, opset=opset)
    (outcome,) = run_passes(after, [step]).values()
    assert not outcome.left
    assert_same(expected, run(after, feeds), tolerance=tolerance)
    if step is rank4.PASS:
        assert highest_rank(after) <= 4
    return after


def highest_rank(graph: ir.Model) -> int:
    values = [*graph.graph.inputs, *graph.graph.initializers.values()]
    values += [value for node in graph.graph for value in node.outputs]
    return max(len(value.shape) for value in values if value.shape is not None)


def i64(*numbers: int) -> np.ndarray:
    return np.asarray(numbers, np.int64)


@check
@given(volumes, st.data())
def test_3d_convolution(shape: tuple[int, ...], data: st.DataObject) -> None:
    group = data.draw(st.sampled_from([n for n in (1, 2, 4) if shape[1] % n == 0]))
    out = group * data.draw(st.integers(1, 3))
    kernel = [data.draw(st.integers(1, min(3, length))) for length in shape[2:]]
    strides = [data.draw(st.integers(1, 2)) for _ in kernel]
    pads = [data.draw(st.integers(0, 2)) for _ in range(6)]
    constants = {"w": random((out, shape[1] // group, *kernel), 9)}
    names = ["x", "w"]
    if data.draw(st.booleans()):
        constants["b"] = random((out,), 8)
        names.append("b")
    node = make_node("Conv", names, ["y"], strides=strides, pads=pads, group=group, kernel_shape=kernel)
    form = data.draw(st.sampled_from([conv3d.by_cost, conv3d.taps_as_inputs, conv3d.taps_as_outputs]))
    lowered([node], {"x": shape}, constants, step=conv3d.conv3d_pass(form))
    lowered([node], {"x": shape}, constants)


@pytest.mark.parametrize("auto_pad", ["SAME_UPPER", "SAME_LOWER", "VALID"])
@pytest.mark.parametrize("dilation", [1, 2])
def test_3d_convolution_padded_automatically_and_dilated(auto_pad: str, dilation: int) -> None:
    strides = [1, 1, 1] if dilation == 2 else [2, 1, 2]
    node = make_node("Conv", ["x", "w"], ["y"], auto_pad=auto_pad, strides=strides, dilations=[dilation] * 3)
    if auto_pad != "VALID" and dilation == 2:  # ONNX Runtime refuses this pair itself
        node = make_node("Conv", ["x", "w"], ["y"], pads=[2, 0, 1, 2, 2, 0], dilations=[2, 2, 2])
    lowered([node], {"x": (1, 3, 7, 8, 6)}, {"w": random((4, 3, 3, 2, 3))})


@check
@given(volumes, st.data())
def test_3d_pooling(shape: tuple[int, ...], data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from(["MaxPool", "AveragePool"]))
    kernel = [data.draw(st.integers(1, min(3, length))) for length in shape[2:]]
    strides = [data.draw(st.integers(1, 2)) for _ in kernel]
    pads = [data.draw(st.integers(0, size - 1)) for size in kernel] * 2
    extra = {"count_include_pad": data.draw(st.integers(0, 1))} if kind == "AveragePool" else {}
    lowered([make_node(kind, ["x"], ["y"], kernel_shape=kernel, strides=strides, pads=pads, **extra)], {"x": shape})


@check
@given(volumes, st.data())
def test_3d_resize(shape: tuple[int, ...], data: st.DataObject) -> None:
    mode = data.draw(st.sampled_from(["nearest", "linear"]))
    scales = [1.0, 1.0, *(data.draw(st.sampled_from([1.0, 2.0, 3.0, 0.5])) for _ in range(3))]
    if any(int(length * scale) == 0 for length, scale in zip(shape, scales, strict=True)):
        scales = [1.0, 1.0, 1.0, 2.0, 2.0]
    transform = data.draw(st.sampled_from(["asymmetric", "half_pixel", "align_corners"]))
    kept = {"mode": mode, "coordinate_transformation_mode": transform, "nearest_mode": "floor"}
    if data.draw(st.booleans()):
        sizes = i64(*(int(length * scale) for length, scale in zip(shape, scales, strict=True)))
        lowered([make_node("Resize", ["x", "", "", "s"], ["y"], **kept)], {"x": shape}, {"s": sizes})
    else:
        lowered([make_node("Resize", ["x", "", "s"], ["y"], **kept)], {"x": shape}, {"s": np.float32(scales)})


@check
@given(sixes, st.data())
def test_broadcast_arithmetic(shape: tuple[int, ...], data: st.DataObject) -> None:
    first = tuple(length if data.draw(st.booleans()) else 1 for length in shape)
    second = tuple(length if data.draw(st.booleans()) else 1 for length in shape)[data.draw(st.integers(0, 4)) :]
    perm = data.draw(st.permutations(range(6)))
    back = [perm.index(axis) for axis in range(6)]
    nodes = [
        make_node("Transpose", ["x"], ["t"], perm=back),
        make_node("Add", ["t", "z"], ["a"]),
        make_node("Mul", ["a", "c"], ["m"]),
        make_node("Sigmoid", ["m"], ["y"]),
    ]
    constant = random(tuple(length if data.draw(st.booleans()) else 1 for length in shape), 5)
    shapes = {"x": tuple(first[axis] for axis in perm), "z": second}
    lowered(nodes, shapes, {"c": constant})


@check
@given(sixes, st.data())
def test_reshapes_of_a_transposed_tensor(shape: tuple[int, ...], data: st.DataObject) -> None:
    perm = data.draw(st.permutations(range(6)))
    moved = [shape[axis] for axis in perm]
    cut = data.draw(st.integers(1, 5))
    target = data.draw(
        st.sampled_from([
            [int(np.prod(moved[:cut])), *moved[cut:]],
            [*moved[:cut], int(np.prod(moved[cut:]))],
            [*moved[: cut - 1], int(np.prod(moved[cut - 1 : cut + 1])), *moved[cut + 1 :], 1],
            [1, *moved[::-1]] if len(set(moved)) == 1 else [1, *moved],
        ])
    )  # fmt: skip
    nodes = [
        make_node("Transpose", ["x"], ["t"], perm=perm),
        make_node("Reshape", ["t", "s"], ["r"]),
        make_node("Relu", ["r"], ["y"]),
    ]
    lowered(nodes, {"x": shape}, {"s": i64(*target)})


@check
@given(sixes, st.integers(-6, 5), st.permutations(range(6)))
def test_squeezing_tiling_and_expanding(shape: tuple[int, ...], axis: int, perm: list[int]) -> None:
    shape = tuple(1 if index == axis % 6 else length for index, length in enumerate(shape))
    wider = tuple(3 if index == axis % 6 else length for index, length in enumerate(shape))
    nodes = [
        make_node("Expand", ["x", "shape"], ["e"]),
        make_node("Transpose", ["e"], ["t"], perm=perm),
        make_node("Tile", ["t", "times"], ["tiled"]),
        make_node("Unsqueeze", ["tiled", "two"], ["u"]),
        make_node("Neg", ["u"], ["n"]),
        make_node("Squeeze", ["n", "two"], ["y"]),
    ]
    lowered(nodes, {"x": shape}, {"shape": i64(*wider), "times": i64(1, 2, 1, 1, 3, 1), "two": i64(2, 4)})


@check
@given(sixes, st.integers(-6, 5), st.permutations(range(6)))
def test_joining_and_cutting(shape: tuple[int, ...], axis: int, perm: list[int]) -> None:
    length = shape[perm[axis]]
    nodes = [
        make_node("Transpose", ["x"], ["t"], perm=perm),
        make_node("Concat", ["t", "z", "t"], ["joined"], axis=axis),
        make_node("Slice", ["joined", "from", "to", "axis", "step"], ["cut"]),
        make_node("Split", ["joined", "parts"], ["a", "b"], axis=axis),
        make_node("Gather", ["b", "which"], ["y"], axis=axis),
        make_node("Pad", ["a", "widths", "", "axis"], ["padded"], mode="edge"),
        make_node("Abs", ["padded"], ["w"]),
    ]
    constants = {
        "from": i64(-1), "to": i64(-9), "step": i64(-2), "axis": i64(axis), "parts": i64(length, 2 * length),
        "which": np.asarray([[0, -1], [length, 0]], np.int64), "widths": i64(2, 1),
    }  # fmt: skip
    shapes = {"x": shape, "z": tuple(shape[index] for index in perm)}
    lowered(nodes, shapes, constants, outputs=("y", "cut", "w"))


@check
@given(sixes, st.data())
def test_reductions_and_softmax(shape: tuple[int, ...], data: st.DataObject) -> None:
    axes = data.draw(st.lists(st.integers(0, 5), min_size=1, max_size=6, unique=True))
    perm = data.draw(st.permutations(range(6)))
    keep = data.draw(st.integers(0, 1))
    kind = data.draw(st.sampled_from(["ReduceSum", "ReduceMean", "ReduceMax", "ReduceL2"]))
    opset = data.draw(st.sampled_from([16, 20]))
    nodes = [
        make_node("Transpose", ["x"], ["t"], perm=perm),
        make_node("Softmax", ["t"], ["s"], axis=axes[0] - 6),
        make_node(kind, ["s", "axes"], ["y"], keepdims=keep)
        if opset >= 18 or kind == "ReduceSum"
        else make_node(kind, ["s"], ["y"], keepdims=keep, axes=axes),
    ]
    lowered(nodes, {"x": shape}, {"axes": i64(*axes)}, opset=opset)


@check
@given(sixes, st.integers(0, 5), st.permutations(range(6)), st.integers(0, 1))
def test_running_sums_and_places_of_maxima(shape: tuple[int, ...], axis: int, perm: list[int], keep: int) -> None:
    nodes = [
        make_node("Transpose", ["x"], ["t"], perm=perm),
        make_node("CumSum", ["t", "axis"], ["y"], reverse=1),
        make_node("ArgMax", ["t"], ["z"], axis=axis, keepdims=keep),
    ]
    lowered(nodes, {"x": shape}, {"axis": np.asarray(axis, np.int64)}, outputs=("y", "z"))


@pytest.mark.parametrize("shape", [(2, 4, 3, 5, 6), (1, 4, 2, 2, 2, 3)])
def test_normalisations(shape: tuple[int, ...]) -> None:
    constants = {name: np.abs(random((4,), index)) + 0.5 for index, name in enumerate("smvo")}
    constants |= {"g": random(shape[3:], 7), "h": random(shape[3:], 8)}
    nodes = [
        make_node("BatchNormalization", ["x", "s", "o", "m", "v"], ["a"], epsilon=1e-3),
        make_node("InstanceNormalization", ["a", "s", "o"], ["b"]),
        make_node("LayerNormalization", ["b", "g", "h"], ["y"], axis=3),
    ]
    lowered(nodes, {"x": shape}, constants, outputs=("y", "b"))


@pytest.mark.parametrize("kind", ["GlobalAveragePool", "GlobalMaxPool"])
def test_global_pooling(kind: str) -> None:
    lowered([make_node(kind, ["x"], ["y"])], {"x": (2, 4, 3, 5, 6)})


@pytest.mark.parametrize(
    "shapes", [((2, 3, 1, 4, 5), (2, 1, 2, 5, 3)), ((1, 2, 2, 4, 5), (5, 3)), ((2, 5), (1, 2, 3, 5, 4))]
)
def test_matrix_products(shapes: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
    lowered([make_node("MatMul", ["x", "z"], ["y"])], {"x": shapes[0], "z": shapes[1]})


def test_the_boundary_keeps_its_names_and_remembers_its_shapes() -> None:
    nodes = [make_node("Relu", ["volume"], ["r"]), make_node("Neg", ["r"], ["result"])]
    graph = lowered(nodes, {"volume": (1, 2, 3, 4, 5)}, outputs=("result", "r"))
    assert [value.name for value in graph.graph.inputs] == ["volume"]
    assert [value.name for value in graph.graph.outputs] == ["result", "r"]
    assert json.loads(graph.metadata_props[SHAPES_KEY]) == {name: [1, 2, 3, 4, 5] for name in ("r", "result", "volume")}


def test_a_pass_alone_leaves_the_other_operators_and_the_boundary() -> None:
    nodes = [
        make_node("Conv", ["x", "w"], ["c"], pads=[1] * 6),
        make_node("Relu", ["c"], ["r"]),
        make_node("MaxPool", ["r"], ["y"], kernel_shape=[2, 2, 2]),
    ]
    feeds = {"x": random((1, 3, 4, 5, 6))}
    constants = {"w": random((2, 3, 3, 3, 3))}
    before = model(nodes, {"x": (1, 3, 4, 5, 6)}, ["y"], constants)
    after = model(nodes, {"x": (1, 3, 4, 5, 6)}, ["y"], constants)
    (outcome,) = run_passes(after, [conv3d.PASS]).values()
    assert len(outcome.rewritten) == 1
    assert not outcome.left
    assert highest_rank(after) == 5
    assert_same(run(before, feeds), run(after, feeds))


def test_what_has_no_rule_is_left_and_named() -> None:
    nodes = [make_node("ConvTranspose", ["x", "w"], ["y"], name="up")]
    after = model(nodes, {"x": (1, 2, 3, 3, 3)}, ["y"], {"w": random((2, 2, 2, 2, 2))})
    (outcome,) = run_passes(after, [rank4.PASS]).values()
    assert outcome.left == {"ConvTranspose 'up'": "no rule for this operator"}


def test_reasons_name_the_first_nodes_and_count_the_others() -> None:
    outcome = Outcome(
        left={"Conv 'a'": "too small", "Conv 'b'": "too small", "Relu 'c'": "odd", "Conv 'd'": "too small"}
    )
    assert outcome.reasons() == ["Conv 'a', Conv 'b' and 1 more: too small", "Relu 'c': odd"]
