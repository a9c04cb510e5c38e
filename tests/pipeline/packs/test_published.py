"""The published pack, by its shipped manifest, through the code that renders: on a stand-in, on the golden vectors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest

from pipeline import RuntimeOptions, Settings, open_pack, render
from pipeline.graphs.standins import SeededWeights
from pipeline.packs.pack import Pack
from pipeline.packs.standins import networks
from pipeline.packs.standins.widths import REDUCED
from pipeline.report import Report
from pipeline.runtime.library import onnxruntime
from pipeline.stages.motion import make_motion
from pipeline.stages.sound import read_sound
from pipeline.studio import LIP_CLOSING, Studio
from pipeline.values import F32, Appearance, Motion, Portrait, Sound, Source
from tests.fakes import FakeModel
from tests.published import FakeModels, copy_pack
from tests.workers.fleet import cut_voice

SAMPLES = Path(__file__).parents[3] / "samples"
GOLDEN = Path(__file__).parents[2] / "data" / "golden"
OPTIONS = RuntimeOptions(threads=2)
WINDOW = 64000


def golden(name: str) -> dict[str, np.ndarray]:
    with np.load(GOLDEN / f"{name}.npz") as file:
        return dict(file)


@pytest.fixture(scope="module")
def studio(published: Pack) -> Studio:
    return Studio(published, OPTIONS)


@pytest.fixture(scope="module")
def appearance(studio: Studio, sample: Portrait) -> Appearance:
    return studio.make_appearance(sample, Report())


def test_it_makes_a_film(published: Pack, tmp_path: Path) -> None:
    """What the fleet makes of it, see tests/workers/test_fleet.py."""
    voice = cut_voice(tmp_path / "voice.wav", 1.2)
    settings = Settings(preset="quality", frame="crop", fps=Fraction(5))
    report = render(SAMPLES / "portrait.png", voice, tmp_path / "film.webm", settings, pack=published, options=OPTIONS)
    assert report.pack == "timeline-studio"
    assert report.frames.total == 6
    assert 3 <= report.frames.key_frames < 6  # 2 a second and extras
    assert report.repairs == []
    assert any("mouth is open (lip ratio 0.15)" in note for note in report.notes)
    with av.open(str(tmp_path / "film.webm")) as container:
        frames = [frame.to_ndarray(format="rgb24") for frame in container.decode(video=0)]
    assert [frame.shape for frame in frames] == [(512, 512, 3)] * 6
    assert np.abs(frames[0].astype(int) - frames[5]).mean() > 0.2


def test_keypoints_reach_the_generator_by_name(studio: Studio, appearance: Appearance) -> None:
    """Both are [1, 21, 3]: in each other's place they would fail nowhere and move everything backwards."""
    motion = moving(4)
    scene = studio.scene(appearance, motion, 4 / 25, Settings(preset="preview"))
    (frame,) = scene.render([2], np.full((256, 256, 3), 128, np.uint8), Report())
    session = onnxruntime().InferenceSession(
        str(studio.pack.model_path(studio.pack.manifest.model("generator_256"))), providers=["CPUExecutionProvider"]
    )
    feed = {
        "feature_3d": appearance.features["feature_3d"],
        "kp_source": appearance.source.keypoints[None],
        "kp_driving": scene.keypoints(2)[None],
    }
    (image,) = session.run(["out"], feed)
    assert np.abs(frame.image - image[0].transpose(1, 2, 0) * 255).max() < 1
    feed["kp_source"], feed["kp_driving"] = feed["kp_driving"], feed["kp_source"]
    assert np.abs(session.run(["out"], feed)[0] - image).max() > 0.02


def moving(frames: int) -> Motion:
    random = np.random.default_rng(0)
    return Motion(
        expression=random.normal(0, 0.01, (frames, 63)).astype(np.float32),
        scale=random.normal(1.3, 0.01, frames).astype(np.float32),
        translation=random.normal(0, 0.02, (frames, 3)).astype(np.float32),
        angles=random.normal(0, 3, (frames, 3)).astype(np.float32),
        fps=25.0,
    )


def test_golden_source_keypoints(published: Pack, sample: Portrait) -> None:
    """geometry.npz as outputs of the motion extractor, under the names of the manifest."""
    g = golden("geometry")
    for row in range(len(g["kp"])):
        outputs = {angle: g[f"{angle}_logits"][row : row + 1] for angle in ("pitch", "yaw", "roll")}
        outputs |= {name: g[name][row].reshape(1, -1) for name in ("kp", "exp", "t", "scale")}
        fakes = {
            "motion_extractor": FakeModel(lambda inputs, outputs=outputs: outputs),
            "appearance": FakeModel(lambda inputs: {}),
        }
        made = Studio(published, OPTIONS, FakeModels(published, fakes)).make_appearance(sample, Report()).source
        np.testing.assert_allclose(made.keypoints, g["source_keypoints"][row], atol=1e-5)
        np.testing.assert_allclose(made.rotation, g["rotation"][row], atol=1e-5)


def test_golden_driving_keypoints(published: Pack) -> None:
    """driving.npz by the manifest's rules, up to stitching."""
    g = golden("driving")
    source = Source(
        keypoints=g["source_keypoints"][0],
        kp=g["kp"][0],
        rotation=g["rotation"][0],
        scale=float(g["scale"].item()),
        translation=g["t"][0],
        expression=g["exp"][0],
    )
    motion = Motion(
        expression=g["driving_exp"].reshape(24, -1),
        scale=g["driving_scale"][:, 0],
        translation=g["driving_t"],
        angles=g["driving_angles"],
        fps=25.0,
    )
    unmoved = FakeModel(lambda inputs: {"delta": np.zeros((1, 65), np.float32)})
    studio = Studio(published, OPTIONS, FakeModels(published, {"stitching": unmoved}))
    scene = studio.scene(Appearance({}, source), motion, 24 / 25, Settings())
    made = np.stack([scene.keypoints(frame) for frame in range(24)])
    np.testing.assert_allclose(made, g["driving_keypoints"], atol=1e-5)
    assert unmoved.runs == 24


def test_golden_motion(published: Pack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """sampler.npz: three windows through stage 3, with its tables in the pack's files."""
    g = golden("sampler")
    draws = iter([g["motion_at_T"][0], *g["noise"].reshape(-1, 100, 73)])
    monkeypatch.setattr("pipeline.stages.motion._normal", lambda random, spec: next(draws).astype(np.float32))
    start = np.concatenate([g[name].reshape(-1) for name in ("start_audio", "start_motion", "null_audio")])
    files = {
        "joyvasa/joyvasa-conditioning.bin": start.astype("<f4").tobytes(),
        "joyvasa/joyvasa-schedule.bin": np.column_stack([g["alphas"], g["alpha_bars"]]).astype("<f4").tobytes(),
    }

    def plain_units(manifest: dict[str, Any]) -> None:
        for part in manifest["motion"]["parts"].values():
            del part[next(name for name in ("mean", "min") if name in part)]
            del part[next(name for name in ("std", "max") if name in part)]
            part |= {"mean": 0.0, "std": 1.0}

    pack = copy_pack(published, tmp_path / "golden", files, plain_units)
    windows = iter(g["audio"])

    def stand_in(inputs: Mapping[str, Any]) -> dict[str, np.ndarray]:
        motions = np.concatenate([inputs["previous_motion"], inputs["motion"]], 1)
        audio = np.concatenate([inputs["previous_audio"], inputs["audio"]], 1)
        step = inputs["step"][:, None, None].astype(np.float32)
        return {"motion": np.tanh(motions @ g["A"] + audio @ g["B"] + step * g["c"])}

    fakes = {
        "speech_encoder": FakeModel(lambda inputs: {"audio_features": next(windows)[None]}),
        "denoiser": FakeModel(stand_in),
    }
    sound = Sound(np.zeros(3 * WINDOW, np.float32), 16000, 12.0)
    settings = Settings(guidance=float(g["cfg_scale"]), smoothing=0)
    made = Studio(pack, OPTIONS, FakeModels(pack, fakes)).make_motion(sound, settings, Report(), lambda done, all: None)
    wanted = g["motion"].reshape(-1, 73)
    np.testing.assert_allclose(made.expression, wanted[:, :63], atol=1e-5)
    np.testing.assert_allclose(made.scale, wanted[:, 63], atol=1e-5)
    np.testing.assert_allclose(made.translation, wanted[:, 64:67], atol=1e-5)
    np.testing.assert_allclose(made.angles, wanted[:, 67:70], atol=1e-5)
    assert next(draws, None) is None


def jumps(motion: Motion) -> F32:
    """How far all that is smoothed or not moves from each frame to the next, [2, M - 1]."""
    return np.stack([np.linalg.norm(np.diff(rows, axis=0), axis=1) for rows in (motion.expression, motion.angles)])


@pytest.mark.parametrize("settings", [Settings(), Settings(smoothing=0, guidance=2.8)], ids=["defaults", "raw"])
def test_ten_seconds_cross_windows_without_a_jump(studio: Studio, settings: Settings, tmp_path: Path) -> None:
    """At frames 100 and 200; a denoiser that is not told what was before jumps several times as far."""
    sound, _ = read_sound(cut_voice(tmp_path / "voice.wav", 10))
    made = jumps(studio.make_motion(sound, settings, Report(), lambda done, total: None))
    borders = [99, 199]
    within = np.delete(made, borders, axis=1).max(axis=1, keepdims=True)
    assert (made[:, borders] <= within).all()

    denoiser = studio.models.get("denoiser")
    forgetful = FakeModel(lambda inputs: denoiser.run({**inputs, "previous_motion": inputs["previous_motion"] * 0}))
    apart = make_motion(
        sound, studio.models.get("speech_encoder"), forgetful, studio.speech, studio.layout, seed=settings.seed,
        guidance=settings.guidance, smoothing=settings.smoothing,
    )  # fmt: skip
    assert (jumps(apart)[0, borders] > 2 * within[0]).all()


def test_open_lips_are_closed_where_the_pack_has_the_network(
    published: Pack, appearance: Appearance, sample: Portrait, tmp_path: Path
) -> None:
    """The published pack has none and says so; with the upstream one its source closes by what that one gives."""
    lip = networks.lip_closing(REDUCED.stitching, SeededWeights()).SerializeToString()
    spec = {
        "file": "stitching_lip.onnx",
        "inputs": {"keypoints": {"name": "input", "shape": [1, 65], "dtype": "float32"}},
        "outputs": {"delta": {"name": "output", "shape": [1, 63], "dtype": "float32"}},
    }
    pack = copy_pack(
        published, tmp_path / "lips", {"stitching_lip.onnx": lip}, lambda m: m["models"].update({LIP_CLOSING: spec})
    )
    models = FakeModels(pack, {"appearance": FakeModel(lambda inputs: {})})
    studio, report = Studio(pack, OPTIONS, models), Report()
    source = studio.make_appearance(sample, report).source
    studio.describe_portrait(sample, report)
    assert report.notes == []

    points = sample.landmarks[:, :2]
    ratio = np.linalg.norm(points[13] - points[14]) / np.linalg.norm(points[61] - points[291])
    given = np.concatenate([source.keypoints.reshape(-1), [ratio, 0]]).astype(np.float32)
    session = onnxruntime().InferenceSession(lip, providers=["CPUExecutionProvider"])
    (delta,) = session.run(None, {"input": given[None]})
    assert source.lip_closing is not None
    np.testing.assert_allclose(source.lip_closing, delta.reshape(21, 3), atol=1e-6)
    assert np.abs(delta).max() > 1e-4

    assert appearance.source.lip_closing is None
    closed = sample.landmarks.copy()
    closed[14] = closed[13]
    assert studio.make_appearance(replace(sample, landmarks=closed), Report()).source.lip_closing is None


def test_another_pack_is_another_identity(published: Pack) -> None:
    assert published.identity != open_pack().identity
