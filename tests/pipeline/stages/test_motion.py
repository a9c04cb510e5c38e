"""Stage 3 with stand-in models: windows, lengths, errors. The golden vectors are in packs/test_published.py."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pipeline.errors import ModelError
from pipeline.packs.specs import MotionLayout, MotionPart, SpeechSpec
from pipeline.runtime.places import Place
from pipeline.runtime.providers import CPU
from pipeline.stages.motion import make_motion
from pipeline.stages.smoothing import smoothed
from pipeline.values import Sound

GOLDEN = Path(__file__).parents[2] / "data" / "golden" / "sampler.npz"
RATE, FRAME, WINDOW, PREVIOUS = 16000, 640, 100, 10


def part(start: int, stop: int, gain: float = 1, offset: float = 0) -> MotionPart:
    return MotionPart(start, stop, np.full(stop - start, gain, np.float32), np.full(stop - start, offset, np.float32))


def layout(size: int) -> MotionLayout:
    """The published models' order: expression, scale, translation, pitch, yaw, roll, and unused columns."""
    e = size - 10
    return MotionLayout(
        part(0, e),
        part(e, e + 1),
        part(e + 1, e + 4),
        part(e + 4, e + 5),
        part(e + 5, e + 6),
        part(e + 6, e + 7),
    )


class Encoder:
    """Features = mean of each frame's samples; remembers what it was given."""

    place = Place("fake.onnx", CPU)

    def __init__(self) -> None:
        self.heard: list[np.ndarray] = []

    def run(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        audio = inputs["audio"]
        assert audio.dtype == np.float32
        assert audio.shape == (1, WINDOW * FRAME + 80)
        self.heard.append(audio[0])
        return {"audio_features": audio[:, 40:-40].reshape(1, WINDOW, FRAME).mean(2, keepdims=True)}


class Denoiser:
    """x0 = `function(inputs)` [2, P + W, V]; remembers the inputs of step 1."""

    place = Place("fake.onnx", CPU)

    def __init__(self, function: Any) -> None:
        self.function = function
        self.last: list[dict[str, Any]] = []

    def run(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        if inputs["step"][0] == 1:
            self.last.append(dict(inputs))
        return {"motion": self.function(inputs)}


def follow_audio(inputs: Mapping[str, Any]) -> np.ndarray:
    both = np.concatenate([inputs["previous_audio"], inputs["audio"]], 1)
    return np.broadcast_to(both, (2, PREVIOUS + WINDOW, 11)).astype(np.float32)


@pytest.fixture(scope="module")
def golden() -> dict[str, np.ndarray]:
    with np.load(GOLDEN) as file:
        return dict(file)


@pytest.fixture
def spec(golden: dict[str, np.ndarray]) -> SpeechSpec:
    return SpeechSpec(
        encoder="encoder",
        denoiser="denoiser",
        sample_rate=RATE,
        fps=25.0,
        window_frames=WINDOW,
        previous_frames=PREVIOUS,
        reflect_pads=(20, 20),
        motion_size=11,
        audio_size=1,
        guidance=1.0,
        start_audio=np.zeros((PREVIOUS, 1), np.float32),
        start_motion=np.full((PREVIOUS, 11), 7, np.float32),
        null_audio=np.full((1, 1), -5, np.float32),
        alpha=golden["alphas"],
        alpha_bar=golden["alpha_bars"],
    )


def sound(samples: int) -> Sound:
    random = np.random.default_rng(samples)
    return Sound(random.uniform(-1, 1, samples).astype(np.float32), RATE, samples / RATE)


@pytest.mark.parametrize(
    ("samples", "frames"),
    [(1, 1), (640, 1), (641, 2), (3200, 5), (63999, 100), (64000, 100), (64001, 101), (150123, 235)],
)
def test_every_begun_frame_of_sound_is_shown(spec: SpeechSpec, samples: int, frames: int) -> None:
    out = make_motion(sound(samples), Encoder(), Denoiser(follow_audio), spec, layout(11), seed=0)
    assert len(out) == frames
    assert out.expression.shape == (frames, 1)
    assert out.translation.shape == out.angles.shape == (frames, 3)
    assert out.fps == 25


def test_a_frame_shows_its_own_samples_in_every_window(spec: SpeechSpec) -> None:
    voice = sound(150123)
    out = make_motion(voice, Encoder(), Denoiser(follow_audio), spec, layout(11), seed=0)
    padded = np.pad(voice.samples, (0, 235 * FRAME - 150123)).reshape(-1, FRAME)
    np.testing.assert_allclose(out.scale, padded.mean(1), atol=1e-6)


def test_windows_are_reflected_at_their_ends_and_the_last_is_filled_with_silence(spec: SpeechSpec) -> None:
    encoder, voice = Encoder(), sound(70000)
    make_motion(voice, encoder, Denoiser(follow_audio), spec, layout(11), seed=0)
    first, last = encoder.heard
    window = voice.samples[:64000]
    np.testing.assert_array_equal(first[40:-40], window)
    np.testing.assert_array_equal(first[:40], np.pad(np.pad(window, 20, "reflect"), 20, "reflect")[:40])
    np.testing.assert_array_equal(last[40 + 6000 :], 0)


def test_a_window_starts_from_the_end_of_the_one_before(spec: SpeechSpec) -> None:
    denoiser = Denoiser(follow_audio)
    make_motion(sound(128000), Encoder(), denoiser, spec, layout(11), seed=0)
    first, second = denoiser.last
    np.testing.assert_array_equal(first["previous_motion"], np.full((2, PREVIOUS, 11), 7))
    np.testing.assert_array_equal(first["previous_audio"], 0)
    np.testing.assert_array_equal(second["previous_audio"], first["audio"][[1, 1], -PREVIOUS:])
    np.testing.assert_allclose(second["previous_motion"][0], np.repeat(first["audio"][1, -PREVIOUS:], 11, 1), atol=1e-6)
    for inputs in denoiser.last:
        np.testing.assert_array_equal(inputs["audio"][0], -5)
        np.testing.assert_array_equal(inputs["motion"][0], inputs["motion"][1])


@pytest.mark.parametrize(("frames", "windows"), [(1, 1), (100, 1), (101, 2), (190, 2), (191, 3), (235, 3)])
def test_windows_that_overlap_cover_the_sound(spec: SpeechSpec, frames: int, windows: int) -> None:
    encoder, voice = Encoder(), sound(frames * FRAME)
    overlapping = replace(spec, overlap_frames=10)
    out = make_motion(voice, encoder, Denoiser(follow_audio), overlapping, layout(11), seed=0)
    assert len(encoder.heard) == windows
    np.testing.assert_array_equal(
        encoder.heard[-1][40 : 40 + FRAME], voice.samples[(windows - 1) * 90 * FRAME :][:FRAME]
    )
    np.testing.assert_allclose(out.scale, voice.samples.reshape(-1, FRAME).mean(1), atol=1e-6)


def test_a_window_fades_into_the_next(spec: SpeechSpec) -> None:
    def count(inputs: Mapping[str, Any]) -> np.ndarray:
        before = inputs["previous_motion"][0, -1, 0] if inputs["previous_audio"].any() else -1
        return np.full((2, PREVIOUS + WINDOW, 11), before + 1, np.float32)

    loud = Sound(np.ones(3 * WINDOW * FRAME, np.float32), RATE, 12.0)
    out = make_motion(loud, Encoder(), Denoiser(count), replace(spec, overlap_frames=4), layout(11), seed=0).scale
    np.testing.assert_array_equal(out[:96], 0)
    np.testing.assert_allclose(out[96:100], [0.104, 0.352, 0.648, 0.896], atol=1e-6)
    np.testing.assert_array_equal(out[100:192], 1)
    np.testing.assert_allclose(out[192:196], [1.104, 1.352, 1.648, 1.896], atol=1e-6)


def test_a_window_that_overlaps_starts_from_the_end_of_what_it_does_not_share(spec: SpeechSpec) -> None:
    denoiser = Denoiser(follow_audio)
    make_motion(sound(128000), Encoder(), denoiser, replace(spec, overlap_frames=10), layout(11), seed=0)
    first, second = denoiser.last[:2]
    np.testing.assert_array_equal(second["previous_audio"], first["audio"][[1, 1], 90 - PREVIOUS : 90])
    np.testing.assert_array_equal(second["audio"][1, :10], first["audio"][1, 90:])


def test_guidance_is_the_packs_unless_given(spec: SpeechSpec) -> None:
    def only_the_row(inputs: Mapping[str, Any]) -> np.ndarray:
        return np.broadcast_to(np.float32([1, 3])[:, None, None], (2, PREVIOUS + WINDOW, 11))

    args = (sound(640), Encoder(), Denoiser(only_the_row), replace(spec, guidance=2.0), layout(11))
    assert make_motion(*args, seed=0).scale[0] == pytest.approx(5)
    assert make_motion(*args, seed=0, guidance=0.5).scale[0] == pytest.approx(2)


def test_smoothing_is_the_packs_unless_given(spec: SpeechSpec) -> None:
    args = (sound(64 * FRAME), Encoder(), Denoiser(follow_audio), spec)
    plain, packs = layout(11), replace(layout(11), smoothing=0.5)
    raw = make_motion(*args, plain, seed=0)
    np.testing.assert_array_equal(make_motion(*args, packs, seed=0).angles, smoothed(raw, 0.5).angles)
    np.testing.assert_array_equal(make_motion(*args, packs, seed=0, smoothing=0.9).angles, smoothed(raw, 0.9).angles)
    np.testing.assert_array_equal(make_motion(*args, packs, seed=0, smoothing=0).angles, raw.angles)


def test_a_seed_gives_the_same_motion_and_another_seed_another(spec: SpeechSpec) -> None:
    def shrink(inputs: Mapping[str, Any]) -> np.ndarray:
        return np.concatenate([inputs["previous_motion"], 0.9 * inputs["motion"]], 1)

    def run(seed: int, samples: int = 70000) -> np.ndarray:
        return make_motion(sound(samples), Encoder(), Denoiser(shrink), spec, layout(11), seed=seed).expression

    np.testing.assert_array_equal(run(3), run(3))
    assert np.abs(run(3) - run(4)).max() > 0.01
    np.testing.assert_array_equal(run(3), run(3, samples=140000)[:110])


def test_parts_are_decoded_in_their_units(spec: SpeechSpec) -> None:
    def ones(inputs: Mapping[str, Any]) -> np.ndarray:
        return np.ones((2, PREVIOUS + WINDOW, 11), np.float32)

    parts = MotionLayout(
        part(0, 1, 2, 0.5),
        part(1, 2, 0.1, 1),
        part(2, 5, 3),
        part(5, 6, 10),
        part(6, 7, 20, -1),
        part(7, 8, 30),
    )
    out = make_motion(sound(640), Encoder(), Denoiser(ones), spec, parts, seed=0)
    np.testing.assert_allclose(out.expression, [[2.5]])
    np.testing.assert_allclose(out.scale, [1.1])
    np.testing.assert_allclose(out.translation, [[3, 3, 3]])
    np.testing.assert_allclose(out.angles, [[10, 19, 30]])


def test_progress_is_told_and_can_stop_the_stage(spec: SpeechSpec) -> None:
    class StopError(Exception):
        pass

    told: list[tuple[int, int]] = []

    def on_window(done: int, windows: int) -> None:
        told.append((done, windows))
        if done == 2:
            raise StopError

    encoder = Encoder()
    with pytest.raises(StopError):
        make_motion(sound(4 * 64000), encoder, Denoiser(follow_audio), spec, layout(11), seed=0, on_window=on_window)
    assert told == [(1, 4), (2, 4)]
    assert len(encoder.heard) == 2


def test_values_that_are_not_finite_are_an_error(spec: SpeechSpec) -> None:
    def broken(inputs: Mapping[str, Any]) -> np.ndarray:
        return np.full((2, PREVIOUS + WINDOW, 11), np.nan, np.float32)

    with pytest.raises(ModelError, match="window 1 of 2"):
        make_motion(sound(64001), Encoder(), Denoiser(broken), spec, layout(11), seed=0)


def test_sound_of_another_rate_or_without_samples_is_refused(spec: SpeechSpec) -> None:
    for wrong in (replace(sound(640), sample_rate=8000), sound(0)):
        with pytest.raises(ValueError, match="16000 Hz"):
            make_motion(wrong, Encoder(), Denoiser(follow_audio), spec, layout(11), seed=0)
