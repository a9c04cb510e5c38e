"""Nearest upsampling: recognised by its arithmetic, folded into convolutions, moved down."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import helper

from pipeline.graphs.lower import sink_upsample, upsample
from pipeline.graphs.lower.nearest import repeats
from tests.pipeline.graphs.graphs import model, random, run
from tests.pipeline.graphs.lower.pictures import check, conv, operators, weights

FLOOR = {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}


def resize(source: str, output: str, **attributes: Any) -> Any:
    return helper.make_node("Resize", [source, "", "scales"], [output], name=f"resize_{output}", **attributes)


@st.composite
def upsampled_convolutions(draw: st.DrawFn) -> dict[str, Any]:
    kernel = draw(st.tuples(st.integers(1, 4), st.integers(1, 4)))
    pad = [draw(st.integers(0, size - 1)) for size in kernel]
    return {
        "kernel": kernel,
        "pads": [*pad, *(size - 1 - before for size, before in zip(kernel, pad, strict=True))],
        "factors": draw(st.sampled_from([(2, 2), (4, 4), (3, 2), (1, 2), (2, 1)])),
        "shape": (draw(st.integers(1, 2)), draw(st.integers(1, 3)), draw(st.integers(2, 6)), draw(st.integers(2, 6))),
        "followers": draw(st.integers(0, 2)),
        "twice": draw(st.booleans()),
    }


@given(upsampled_convolutions())
@settings(derandomize=True, deadline=None, max_examples=40)
def test_folding_keeps_the_result(case: dict[str, Any]) -> None:
    after, outcome = check(lambda: _upsampled(case), upsample.PASS)
    assert len(outcome.rewritten) == 1 + case["twice"]
    assert "Resize" not in operators(after)


def _upsampled(case: dict[str, Any]) -> ir.Model:
    constants = {
        "scales": np.array([1, 1, *case["factors"]], np.float32),
        "w": weights(3, case["shape"][1], *case["kernel"]),
        "b": random([3], 2),
    }
    nodes = [resize("x", "u", **FLOOR), conv(["u", "w", "b"], "c", pads=case["pads"])]
    if case["followers"] > 0:
        nodes.append(helper.make_node("LeakyRelu", ["c"], ["r"], alpha=0.3))
    if case["followers"] > 1:
        nodes.append(helper.make_node("Clip", ["r", "low"], ["k"]))
        constants["low"] = np.float32(-0.1)
    outputs = [["c", "r", "k"][case["followers"]]]
    if case["twice"]:
        nodes.append(conv(["u", "w"], "d", pads=case["pads"]))
        outputs.append("d")
    return model(nodes, {"x": case["shape"]}, outputs, constants)


def test_equal_phases_are_computed_once() -> None:
    case = {"kernel": (3, 3), "pads": [1] * 4, "factors": (4, 4), "shape": (1, 3, 5, 5), "followers": 1, "twice": False}
    after, _ = check(lambda: _upsampled(case), upsample.PASS)
    assert operators(after).count("Conv") == 9
    assert operators(after).count("LeakyRelu") == 9
    taps = sum(value.shape[2] * value.shape[3] for node in after.graph if node.op_type == "Conv"
               for value in node.inputs[1:2])  # fmt: skip
    assert taps == 25  # of 144


@pytest.mark.parametrize(
    "mode", ["half_pixel", "pytorch_half_pixel", "asymmetric", "align_corners", "half_pixel_symmetric"]
)
@pytest.mark.parametrize("rounding", ["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"])
@pytest.mark.parametrize("factor", [2, 3, 4])
def test_repetition_is_proven_by_what_the_runtime_does(mode: str, rounding: str, factor: int) -> None:
    graph = model(
        [resize("x", "y", mode="nearest", coordinate_transformation_mode=mode, nearest_mode=rounding)],
        {"x": (1, 2, 3, 5)},
        ["y"],
        {"scales": np.array([1, 1, factor, factor], np.float32)},
        opset=19,
    )
    x = random((1, 2, 3, 5))
    repeated = np.array_equal(run(graph, {"x": x})["y"], x.repeat(factor, 2).repeat(factor, 3))
    assert (repeats(graph.graph[0]) == (factor, factor)) == repeated


@pytest.mark.parametrize(
    ("attributes", "scales"),
    [
        ({"mode": "linear"}, [1, 1, 2, 2]),
        (FLOOR, [1, 1, 1.5, 2]),
        (FLOOR, [1, 2, 2, 2]),
        (FLOOR, [1, 1, 0.5, 2]),
    ],
)
def test_other_resizing_is_left(attributes: dict[str, Any], scales: list[float]) -> None:
    graph = model(
        [resize("x", "u", **attributes), conv(["u", "w"], "y", pads=[1] * 4)],
        {"x": (1, 2, 4, 4)},
        ["y"],
        {"scales": np.array(scales, np.float32), "w": weights(3, 2 * int(scales[1]), 3, 3)},
    )
    outcome = upsample.PASS.apply(graph)
    assert outcome.left == {"Conv 'conv_y'": "its input is not repeated pixels"}
    assert not sink_upsample.PASS.apply(graph).rewritten
    assert operators(graph) == ["Resize", "Conv"]


@pytest.mark.parametrize("pads", [[0, 0, 0, 0], [2, 2, 2, 2]])
def test_folding_with_other_padding_is_right_or_left(pads: list[int]) -> None:
    case = {"kernel": (3, 3), "pads": pads, "factors": (2, 2), "shape": (1, 2, 4, 5), "followers": 0, "twice": False}
    check(lambda: _upsampled(case), upsample.PASS)


def _with_channels(op_type: str, inputs: list[str], **attributes: Any) -> ir.Model:
    constants = {
        "scales": np.array([1, 1, 2, 3], np.float32),
        "s": np.abs(random([3], 5)) + 0.5,
        "t": random([3], 6),
        "v": np.abs(random([3], 7)) + 0.5,
        "c": random([3, 1, 1], 8),
        "w": weights(4, 3, 1, 1),
    }
    nodes = [
        resize("x", "u", **FLOOR),
        helper.make_node(op_type, inputs, ["o"], **attributes),
        helper.make_node("Relu", ["o"], ["y"]),
    ]
    return model(nodes, {"x": (2, 3, 4, 3)}, ["y"], constants)


@pytest.mark.parametrize(
    ("op_type", "inputs", "attributes"),
    [
        ("InstanceNormalization", ["u", "s", "t"], {}),
        ("BatchNormalization", ["u", "s", "t", "t", "v"], {}),
        ("Sub", ["c", "u"], {}),
        ("Mul", ["u", "u"], {}),
        ("Conv", ["u", "w", ], {"kernel_shape": [1, 1]}),
    ],
)  # fmt: skip
def test_moved_down(op_type: str, inputs: list[str], attributes: dict[str, Any]) -> None:
    after, _ = check(lambda: _with_channels(op_type, inputs, **attributes), sink_upsample.PASS)
    assert operators(after) == [op_type, "Relu", "Resize"]


@pytest.mark.parametrize(
    ("op_type", "inputs", "attributes"),
    [
        ("Softmax", ["u"], {"axis": 3}),
        ("Conv", ["u", "w"], {"kernel_shape": [1, 1], "pads": [1] * 4}),
        ("Conv", ["u", "w"], {"kernel_shape": [1, 1], "strides": [2, 2]}),
    ],
)
def test_what_looks_at_neighbours_stays(op_type: str, inputs: list[str], attributes: dict[str, Any]) -> None:
    after, _ = check(lambda: _with_channels(op_type, inputs, **attributes), sink_upsample.PASS)
    assert operators(after)[0] == "Resize"


def test_same_size_is_dropped() -> None:
    graph = model(
        [
            helper.make_node("Resize", ["x", "", "", "sizes"], ["u"], mode="linear"),
            helper.make_node("Relu", ["u"], ["y"]),
        ],
        {"x": (1, 2, 4, 4)},
        ["y"],
        {"sizes": np.array([1, 2, 4, 4])},
    )
    after, _ = check(lambda: graph.clone(), sink_upsample.PASS)
    assert operators(after) == ["Relu"]
