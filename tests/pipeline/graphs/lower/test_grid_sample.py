"""5-D GridSample by other operators: the same samples, zeros outside, and what is left alone."""

from __future__ import annotations

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.graphs.lower import grid_sample as module
from pipeline.graphs.lower.grid_sample import Form, grid_sample
from pipeline.graphs.lower.passes import run_passes
from tests.pipeline.graphs.graphs import assert_same, model, run

FORMS: tuple[Form, ...] = ("gather", "slices")


def sampling(
    batch: int,
    channels: int,
    size: tuple[int, ...],
    out: tuple[int, ...],
    opset: int = 20,
    **attributes: int | str,
) -> ir.Model:
    node = onnx.helper.make_node("GridSample", ["volume", "grid"], ["out"], **attributes)
    return model([node], {"volume": (batch, channels, *size), "grid": (batch, *out, 3)}, ["out"], opset=opset)


def centre(index: np.ndarray, length: int, align: int) -> np.ndarray:
    """The coordinate whose index is given."""
    if align:
        return 2 * index / max(1, length - 1) - 1
    return (2 * index + 1) / length - 1


def feeds(batch: int, channels: int, size: tuple[int, ...], out: tuple[int, ...], align: int, seed: int) -> dict:
    """A volume, and places inside, at the borders exactly, half and whole elements around them, and far away."""
    rng = np.random.default_rng(seed)
    axes = []
    for length in reversed(size):
        kinds = (
            rng.uniform(-1.5, 1.5, (batch, *out)),
            centre(rng.integers(-2, length + 2, (batch, *out)) * 1.0, length, align),
            centre(rng.integers(-4, 2 * length + 4, (batch, *out)) / 2, length, align),
            rng.choice([-1.0, 1.0, 0.0, 3.0, -1e3, 1e6, -1e9], (batch, *out)),
        )
        axes.append(np.choose(rng.integers(0, len(kinds), (batch, *out)), kinds))
    return {
        "volume": rng.normal(size=(batch, channels, *size)).astype(np.float32),
        "grid": np.stack(axes, -1).astype(np.float32),
    }


@pytest.mark.parametrize("form", FORMS)
@given(
    batch=st.integers(1, 3),
    channels=st.integers(1, 3),
    size=st.tuples(*[st.integers(1, 6)] * 3),
    out=st.tuples(*[st.integers(1, 5)] * 3),
    align=st.integers(0, 1),
    opset=st.sampled_from((16, 20, 22)),
    seed=st.integers(0, 999),
)
@settings(derandomize=True, deadline=None, max_examples=15)
def test_any_grid_gives_the_same_samples(
    form: Form,
    batch: int,
    channels: int,
    size: tuple[int, ...],
    out: tuple[int, ...],
    align: int,
    opset: int,
    seed: int,
) -> None:
    graph = sampling(batch, channels, size, out, opset, align_corners=align)
    given_feeds = feeds(batch, channels, size, out, align, seed)
    before = run(graph, given_feeds)
    outcome = run_passes(graph, [grid_sample(form)])["grid-sample"]
    assert (len(outcome.rewritten), outcome.left) == (1, {})
    assert_same(before, run(graph, given_feeds))
    high = [value.name for node in graph.graph for value in node.outputs if len(value.shape or ()) > 4]
    assert high == ["out"]


def test_a_slice_outside_counts_as_zero() -> None:
    # A quarter of an element beyond the last slice: three quarters of it, not all of it as clamping would give.
    graph = sampling(1, 1, (2, 1, 1), (1, 1, 1))
    run_passes(graph, [grid_sample("gather")])
    z = centre(np.asarray(1.25), 2, 0)
    grid = np.asarray([0, 0, z], np.float32).reshape(1, 1, 1, 1, 3)
    volume = np.asarray([5, 8], np.float32).reshape(1, 1, 2, 1, 1)
    assert run(graph, {"volume": volume, "grid": grid})["out"].item() == pytest.approx(6.0)


def test_slices_in_several_groups_give_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = (2, 3, (5, 4, 6), (2, 3, 4))
    graph = sampling(*sizes)
    given_feeds = feeds(*sizes, 0, 5)
    before = run(graph, given_feeds)
    monkeypatch.setattr(module, "SLICES_BYTES", 4 * 2 * 3 * 24 * 2)
    run_passes(graph, [grid_sample("slices")])
    assert [node.op_type for node in graph.graph].count("GridSample") == 3  # 2 + 2 + 1 slices
    assert_same(before, run(graph, given_feeds))


def test_slices_use_4d_grid_sample_only() -> None:
    graph = sampling(1, 2, (3, 4, 5), (2, 3, 4))
    run_passes(graph, [grid_sample("slices")])
    nodes = [node for node in graph.graph if node.op_type == "GridSample"]
    assert nodes
    assert all(len(value.shape or ()) == 4 for node in nodes for value in node.inputs if value is not None)
    assert not {"Gather", "GatherND", "GatherElements"} & {node.op_type for node in graph.graph}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("attributes", "reason"),
    [
        ({"mode": "nearest"}, "mode 'nearest'"),
        ({"mode": "cubic"}, "mode 'cubic'"),
        ({"padding_mode": "border"}, "padding 'border'"),
        ({"padding_mode": "reflection"}, "padding 'reflection'"),
    ],
)
def test_other_modes_and_paddings_are_left(form: Form, attributes: dict[str, str], reason: str) -> None:
    graph = sampling(1, 1, (2, 3, 4), (2, 2, 2), **attributes)
    outcome = run_passes(graph, [grid_sample(form)])["grid-sample"]
    assert outcome.rewritten == []
    assert reason in outcome.left["GridSample 'out'"]
    assert [node.op_type for node in graph.graph] == ["GridSample"]


def test_float16_is_left() -> None:
    nodes = [
        onnx.helper.make_node("Cast", ["volume"], ["half"], to=onnx.TensorProto.FLOAT16),
        onnx.helper.make_node("GridSample", ["half", "grid"], ["sampled"]),
        onnx.helper.make_node("Cast", ["sampled"], ["out"], to=onnx.TensorProto.FLOAT),
    ]
    graph = model(nodes, {"volume": (1, 1, 2, 3, 4), "grid": (1, 2, 2, 2, 3)}, ["out"])
    outcome = run_passes(graph, [grid_sample("gather")])["grid-sample"]
    assert "only float32" in outcome.left["GridSample 'sampled'"]
    assert [node.op_type for node in graph.graph] == ["Cast", "GridSample", "Cast"]


def test_images_are_no_concern() -> None:
    node = onnx.helper.make_node("GridSample", ["image", "grid"], ["out"])
    graph = model([node], {"image": (1, 2, 3, 4), "grid": (1, 2, 2, 2)}, ["out"])
    outcome = run_passes(graph, [grid_sample("slices")])["grid-sample"]
    assert (outcome.rewritten, outcome.left) == ([], {})
    assert [node.op_type for node in graph.graph] == ["GridSample"]
