"""The stand-ins run, their activations stay sane, and the same seed gives the same bytes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from numpy.typing import NDArray
from onnx import ModelProto, numpy_helper

from pipeline.graphs.standins import (
    MOTIONS,
    SMALL,
    SeededWeights,
    Spec,
    appearance,
    generator,
    inputs,
    portrait,
    spade_part,
    warping_part,
)
from pipeline.graphs.standins.__main__ import main
from pipeline.graphs.standins.keypoints import feature_volume, keypoints
from pipeline.graphs.standins.warping import identity_grid

Array = NDArray[np.float32]


def run(model: ModelProto, feed: dict[str, Array]) -> dict[str, Array]:
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    names = [value.name for value in session.get_outputs()]
    return dict(zip(names, session.run(names, feed), strict=True))


@cache
def small() -> ModelProto:
    """The small generator that gives every value of interest."""
    return exposed(generator(SMALL))


def exposed(model: ModelProto) -> ModelProto:
    """The outputs of convolutions, softmax and samplings as outputs of the model besides its own."""
    given = {value.name for value in model.graph.output}
    for node in model.graph.node:
        if node.op_type in {"Conv", "Softmax", "GridSample", "Sigmoid"} and node.output[0] not in given:
            model.graph.output.append(onnx.helper.make_tensor_value_info(node.output[0], onnx.TensorProto.FLOAT, None))
    return model


def values_of(model: ModelProto, operator: str) -> list[str]:
    return [node.output[0] for node in model.graph.node if node.op_type == operator]


@pytest.mark.parametrize("kind", MOTIONS)
def test_activations_stay_sane(kind: str) -> None:
    values = run(small(), inputs(SMALL, kind))
    assert all(np.isfinite(value).all() for value in values.values())
    spreads = {name: float(values[name].std()) for name in values_of(small(), "Conv")}
    assert {name: std for name, std in spreads.items() if not 0.1 < std < 10} == {}
    gammas = [std for name, std in spreads.items() if name.endswith("/gamma")]
    assert max(gammas) < 0.5
    assert 0.15 < values["out"].std() < 0.3
    assert np.mean((values["out"] < 0.01) | (values["out"] > 0.99)) < 0.05


def test_mask_is_neither_uniform_nor_one_hot() -> None:
    (name,) = values_of(small(), "Softmax")
    mask = run(small(), inputs(SMALL, "typical"))[name]
    sharing = np.exp(-(mask * np.log(mask + 1e-20)).sum(1)).mean()  # how many motions share a point
    assert 2 < sharing < 18
    assert mask.mean((0, 2, 3, 4)).min() > 0.002


def test_image_follows_the_keypoints() -> None:
    near, far = (run(small(), inputs(SMALL, kind))["out"] for kind in ("near", "far"))
    assert np.abs(near - far).mean() > 0.01


def test_halves_agree_with_the_whole() -> None:
    feed = inputs(SMALL, "typical")
    warped = run(warping_part(SMALL), feed)
    out = run(spade_part(SMALL), warped)["out"]
    np.testing.assert_allclose(out, run(generator(SMALL), feed)["out"], atol=1e-5)


def test_appearance_runs_and_stays_sane() -> None:
    model = exposed(appearance(SMALL))
    values = run(model, {"img": portrait(SMALL)})
    assert all(0.1 < values[name].std() < 10 for name in values_of(model, "Conv"))
    assert values["feature_3d"].shape == (1, 4, 8, 32, 32)
    assert 0.5 < values["feature_3d"].std() < 2


@pytest.mark.parametrize("build", [generator, appearance], ids=["generator", "appearance"])
def test_same_seed_gives_the_same_bytes(build: Callable[[Spec, SeededWeights], ModelProto]) -> None:
    first, again, other = (build(SMALL, SeededWeights(seed)).SerializeToString() for seed in (3, 3, 4))
    assert first == again
    assert first != other


def test_a_parameter_depends_on_its_name_and_shape_alone() -> None:
    narrow, wide = (
        {value.name: numpy_helper.to_array(value) for value in generator(spec).graph.initializer}
        for spec in (SMALL, replace(SMALL, hourglass_channels=8))
    )
    assert narrow["warping/up0.weight"].shape != wide["warping/up0.weight"].shape
    np.testing.assert_array_equal(narrow["spade/image.weight"], wide["spade/image.weight"])


def test_identity_grid() -> None:
    grid = identity_grid(SMALL)
    assert grid.shape == (1, 1, 8, 32, 32, 3)
    np.testing.assert_allclose(grid[0, 0, 3, 5, 7], [2 * 7 / 31 - 1, 2 * 5 / 31 - 1, 2 * 3 / 7 - 1], rtol=1e-6)


def test_feature_volume_has_unit_spread() -> None:
    volume = feature_volume(SMALL)
    assert volume.shape == (1, 4, 8, 32, 32)
    assert volume.std() == pytest.approx(1, abs=1e-3)
    assert np.corrcoef(volume[..., 1:].ravel(), volume[..., :-1].ravel())[0, 1] == pytest.approx(2 / 3, abs=0.05)
    assert np.corrcoef(volume[:, :, 1:].ravel(), volume[:, :, :-1].ravel())[0, 1] == pytest.approx(0, abs=0.05)


def test_keypoint_kinds_move_farther_and_farther() -> None:
    moved = [np.abs(np.subtract(*keypoints(SMALL, kind))).mean() for kind in ("near", "typical", "far", "out")]
    assert moved == sorted(moved)
    assert moved[0] < 0.01


def test_out_throws_most_samples_out_of_the_volume() -> None:
    driving, source = keypoints(SMALL, "out")
    grids = identity_grid(SMALL) + (source - driving)[:, :, None, None, None]
    assert (np.abs(grids) > 1).any(-1).mean() > 0.5


def test_a_batch_holds_frames_of_one_portrait() -> None:
    batch = inputs(SMALL, "typical", batch=3)
    assert {name: value.shape[0] for name, value in batch.items()} == dict.fromkeys(batch, 3)
    np.testing.assert_array_equal(batch["kp_source"][0], batch["kp_source"][2])
    assert np.abs(batch["kp_driving"][0] - batch["kp_driving"][2]).max() > 0


@pytest.mark.parametrize(
    ("arguments", "nodes"),
    [(["generator"], 277), (["generator", "--preview"], 276), (["generator", "--part", "spade"], 194)],
    ids=["whole", "preview", "spade"],
)
def test_command_writes_a_file(
    arguments: list[str], nodes: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "standin.onnx"
    assert main([*arguments, "--small", "-o", str(target)]) == 0
    assert f"{nodes} nodes" in capsys.readouterr().out
    assert len(onnx.load(target).graph.node) == nodes
