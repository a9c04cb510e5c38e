"""3-D convolutions in the transformed domain: by minimal filtering and by Fourier transform."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import onnx_ir as ir
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import helper

from pipeline.graphs.lower import conv3d_cpu, conv3d_direct, conv3d_winograd, overlap_save
from pipeline.graphs.lower.conv3d import Conv3d, Form, by_cost
from pipeline.graphs.lower.conv3d_patches import conv3d_by_patches
from pipeline.graphs.lower.editing import Editor
from pipeline.graphs.lower.rank4 import rank4_pass
from tests.pipeline.graphs.graphs import model, random, run
from tests.pipeline.graphs.lower.pictures import check, conv, operators, weights


def _winograd(taps_as_inputs: bool) -> Form:
    def form(editor: Editor, found: Conv3d) -> ir.Value:
        return conv3d_winograd.conv3d_by_winograd(editor, found, taps_as_inputs=taps_as_inputs)

    return form


def _dft(editor: Editor, found: Conv3d) -> ir.Value:
    cut = overlap_save.tiling(found)
    assert cut is not None
    return overlap_save.conv3d_by_dft(editor, found, cut)


@st.composite
def volumes(draw: st.DrawFn, taps: st.SearchStrategy[int], pad: int) -> dict[str, Any]:
    shape = (draw(st.integers(1, 2)), draw(st.integers(1, 3)), *draw(st.tuples(*[st.integers(7, 12)] * 3)))
    depth = draw(st.integers(1, 3))
    return {
        "shape": shape,
        "weight": (draw(st.integers(1, 3)), shape[1], depth, draw(taps), draw(taps)),
        "attributes": {
            "pads": draw(st.tuples(*[st.integers(0, pad)] * 6)),
            "strides": [draw(st.integers(1, 2)), 1, 1],
            "dilations": [draw(st.integers(1, 2)), 1, 1],
        },
        "bias": draw(st.booleans()),
    }


def _graph(case: dict[str, Any]) -> ir.Model:
    constants = {"w": weights(*case["weight"])} | ({"b": random([case["weight"][0]], 2)} if case["bias"] else {})
    return model([conv(["x", *constants], "y", **case["attributes"])], {"x": case["shape"]}, ["y"], constants)


@given(volumes(st.integers(2, 3), 2))
@pytest.mark.parametrize("taps_as_inputs", [False, True])
@settings(derandomize=True, deadline=None, max_examples=12)
def test_minimal_filtering(taps_as_inputs: bool, case: dict[str, Any]) -> None:
    check(lambda: _graph(case), rank4_pass(_winograd(taps_as_inputs)))


@given(volumes(st.integers(1, 7), 3))
@settings(derandomize=True, deadline=None, max_examples=15)
def test_fourier(case: dict[str, Any]) -> None:
    check(lambda: _graph(case), rank4_pass(_dft))


@given(volumes(st.integers(1, 4), 2))
@pytest.mark.parametrize("form", [conv3d_direct.taps_as_inputs, conv3d_direct.taps_as_outputs, conv3d_by_patches])
@settings(derandomize=True, deadline=None, max_examples=12)
def test_direct(form: Form, case: dict[str, Any]) -> None:
    check(lambda: _graph(case), rank4_pass(form))


@pytest.mark.parametrize("form", [by_cost, conv3d_by_patches])
def test_steps_and_holes(form: Form) -> None:
    attributes = {"pads": [1, 2, 0, 0, 1, 2], "strides": [2, 1, 3], "dilations": [1, 2, 2]}
    case = {"shape": (2, 2, 5, 9, 11), "weight": (3, 2, 2, 3, 3), "attributes": attributes, "bias": True}
    check(lambda: _graph(case), rank4_pass(form))


@given(volumes(st.integers(2, 3), 1), st.sampled_from([(1, 2, 2), (1, 4, 3), (2, 2, 1)]))
@settings(derandomize=True, deadline=None, max_examples=12)
def test_upsampled(case: dict[str, Any], factors: tuple[int, ...]) -> None:
    def graph() -> ir.Model:
        nodes = [
            helper.make_node(
                "Resize",
                ["x", "", "scales"],
                ["u"],
                mode="nearest",
                coordinate_transformation_mode="asymmetric",
                nearest_mode="floor",
            ),
            conv(["u", "w"], "y", **{**case["attributes"], "pads": [1] * 6}),
        ]
        constants = {"scales": np.array([1, 1, *factors], np.float32), "w": weights(*case["weight"])}
        return model(nodes, {"x": (*case["shape"][:3], 4, 5)}, ["y"], constants)

    after, _ = check(graph, rank4_pass(conv3d_cpu.cpu_form))
    if factors[0] == 1 and case["weight"][3:] == (3, 3):
        assert "Resize" not in operators(after)


def test_groups_take_the_next_form() -> None:
    case = {"shape": (1, 4, 3, 12, 12), "attributes": {"group": 2}, "bias": True, "weight": (4, 2, 3, 3, 3)}
    after, _ = check(lambda: _graph(case), rank4_pass(conv3d_cpu.cpu_form, by_cost))
    assert operators(after).count("Conv") == 1


def test_choice_is_by_cost() -> None:
    wide = {"shape": (1, 96, 4, 32, 32), "weight": (96, 96, 3, 3, 3), "attributes": {"pads": [1] * 6}, "bias": True}
    large = {**wide, "weight": (8, 96, 7, 7, 7), "attributes": {"pads": [3] * 6}}
    counts = []
    small = {**wide, "shape": (1, 96, 4, 2, 2)}
    for case in (wide, large, small):
        after, _ = check(lambda case=case: _graph(case), rank4_pass(conv3d_cpu.cpu_form))  # type: ignore[misc]
        counts.append((operators(after).count("Conv"), operators(after).count("MatMul")))
    assert counts == [(1, 3), (0, 5), (0, 1)]


@pytest.mark.parametrize("outputs", overlap_save.OUTPUTS)
def test_every_tile_length(outputs: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(overlap_save, "OUTPUTS", (outputs,))
    case = {"shape": (1, 2, 2, 40, 37), "weight": (2, 2, 1, 5, 4), "attributes": {"pads": [0, 2, 1, 0, 2, 2]}}
    check(lambda: _graph({**case, "bias": False}), rank4_pass(_dft))


def test_error_of_the_fourier_form_is_that_of_the_direct_form() -> None:
    shape, weight = (1, 64, 1, 48, 48), weights(4, 64, 1, 7, 7)
    x, exact = random(shape), np.zeros((4, 48, 48))
    padded = np.pad(x[0, :, 0].astype(np.float64), ((0, 0), (3, 3), (3, 3)))
    for i in range(7):
        for j in range(7):
            exact += np.einsum("oc,chw->ohw", weight[:, :, 0, i, j], padded[:, i : i + 48, j : j + 48], optimize=True)
    graph = model([conv(["x", "w"], "y", pads=[0, 3, 3] * 2)], {"x": shape}, ["y"], {"w": weight})
    assert rank4_pass(_dft).apply(graph).rewritten
    error = np.abs(run(graph, {"x": x})["y"].reshape(exact.shape) - exact)
    assert error.mean() < 4e-7  # results have a standard deviation of 1
    assert error.max() < 3e-6


def test_cost_prefers_the_transform_for_large_kernels_of_pictures() -> None:
    def graph(size: int) -> ir.Model:
        constants = {"w": weights(48, 64, size, size)}
        return model([conv(["x", "w"], "y", pads=[size // 2] * 4)], {"x": (1, 64, 64, 64)}, ["y"], constants)

    large, small = graph(11), graph(3)
    assert overlap_save.PASS.apply(large).rewritten
    assert overlap_save.PASS.apply(small).left
    assert math.prod(large.graph.outputs[0].shape or ()) == 48 * 64 * 64
    check(lambda: graph(11), overlap_save.PASS)
