"""The embedded pack's speech encoder and denoiser, run through the motion stage on sounds made here."""

from __future__ import annotations

import re
import wave
from pathlib import Path

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray

from pipeline.packs.embedded.authoring.anatomy import UNITS
from pipeline.packs.embedded.authoring.architecture import AUDIO_SIZE, HEARD
from pipeline.packs.embedded.authoring.schedule import STEPS, cosine_schedule
from pipeline.packs.embedded.authoring.speech import build_speech_graphs
from pipeline.packs.embedded.authoring.visemes import CLOSED_GAP, lip_gap
from pipeline.packs.embedded.training.phones import arpabet_class, labels
from pipeline.packs.embedded.training.sounds import music, rumble
from pipeline.packs.manifest import ModelSpec, Tensor
from pipeline.packs.specs import MotionLayout, SpeechSpec
from pipeline.packs.store import open_pack
from pipeline.runtime.ladder import Ladder
from pipeline.runtime.options import RuntimeOptions
from pipeline.runtime.session import Session
from pipeline.stages.motion import make_motion
from pipeline.values import Motion, Sound
from tests.benchmarks.speech_motion.measures import Tally

ROOT = Path(__file__).parents[3]
PACK = ROOT / "pipeline" / "packs" / "embedded"
RATE, FRAME, V, A = 16000, 640, 63, AUDIO_SIZE
F64 = NDArray[np.float64]

LIPS = [i for i, name in enumerate(UNITS) if name.startswith(("jaw", "mouth", "tongue"))]


def unit(name: str) -> int:
    return UNITS.index(name)


def model(
    file: str, inputs: dict[str, tuple[str, tuple[int, ...], str]], output: tuple[str, str, tuple[int, ...]]
) -> Session:
    role, name, shape = output
    spec = ModelSpec(file, {r: Tensor(*t) for r, t in inputs.items()}, {role: Tensor(name, shape, "float32")}, {})
    return Session(PACK / file, spec, Ladder(RuntimeOptions(threads=1)))


@pytest.fixture(scope="module")
def encoder() -> Session:
    return model(
        "speech_encoder.onnx",
        {"audio": ("audio_padded", (1, 64080), "float32")},
        ("audio_features", "audio_features", (1, 100, A)),
    )


@pytest.fixture(scope="module")
def denoiser() -> Session:
    shapes = {"motion": (2, 100, V), "audio": (2, 100, A), "previous_motion": (2, 10, V), "previous_audio": (2, 10, A)}
    inputs = {name: (name, shape, "float32") for name, shape in shapes.items()}
    return model(
        "denoiser.onnx", {**inputs, "step": ("step", (2,), "int64")}, ("motion", "motion_prediction", (2, 110, V))
    )


@pytest.fixture(scope="module")
def spec() -> SpeechSpec:
    return SpeechSpec.read(open_pack("embedded"))


@pytest.fixture(scope="module")
def speak(encoder: Session, denoiser: Session, spec: SpeechSpec):  # type: ignore[no-untyped-def]
    layout = MotionLayout.read(open_pack("embedded"))

    def run(samples: F64, seed: int = 0, guidance: float | None = None) -> Motion:
        sound = Sound(samples.astype(np.float32), RATE, len(samples) / RATE)
        return make_motion(sound, encoder, denoiser, spec, layout, seed=seed, guidance=guidance)

    return run


def vowel(seconds: float, formants: tuple[int, ...], pitch: float = 120.0) -> F64:
    """Harmonics of a voice, each as strong as the resonances (80 Hz wide) let it be."""
    time = np.arange(round(seconds * RATE)) / RATE
    total = np.zeros_like(time)
    for k in range(1, int(5000 / pitch)):
        f = k * pitch
        gain = np.prod([1 / np.hypot(1 - (f / c) ** 2, 80 * f / c**2) for c in formants])
        total += gain * np.cos(2 * np.pi * f * time + k * k) / k
    return 0.3 * total / np.abs(total).max()


AH, EE, OO = (750, 1200, 2500, 3500), (300, 2300, 3000, 3600), (320, 800, 2300, 3300)


def murmur(seconds: float) -> F64:
    """What remains of a voice behind closed lips."""
    time = np.arange(round(seconds * RATE)) / RATE
    return 0.06 * np.cos(2 * np.pi * 120 * time) + 0.03 * np.cos(2 * np.pi * 240 * time)


def noise(seconds: float, level: float) -> F64:
    return level * np.random.default_rng(5).standard_normal(round(seconds * RATE))


def silence(seconds: float) -> F64:
    return np.zeros(round(seconds * RATE))


def babble(seconds: float) -> F64:
    """Syllables of many kinds with pauses, something like speech in its rhythm."""
    random = np.random.default_rng(3)
    pieces: list[F64] = []
    while sum(map(len, pieces)) < seconds * RATE:
        formants = (AH, EE, OO)[random.integers(3)]
        pieces += [
            vowel(random.uniform(0.1, 0.25), formants, random.uniform(100, 180)),
            murmur(random.uniform(0.05, 0.1)),
        ]
        if random.random() < 0.15:
            pieces += [silence(random.uniform(0.2, 0.8))]
    return np.concatenate(pieces)[: round(seconds * RATE)]


@pytest.fixture(scope="module")
def minute(speak) -> Motion:  # type: ignore[no-untyped-def]
    result: Motion = speak(babble(64), seed=7)
    return result


JOINTS = np.arange(90, 1600, 90)
"""Where windows of 100 frames begin that share 10 with the one before."""


def test_the_files_are_rebuilt_bit_for_bit(tmp_path: Path) -> None:
    build_speech_graphs(tmp_path)
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["conditioning.bin", "denoiser.onnx", "schedule.bin", "speech_encoder.onnx"]
    for name in names:
        assert (tmp_path / name).read_bytes() == (PACK / name).read_bytes(), name


def test_tensors_are_those_of_the_published_models() -> None:
    def shapes(values) -> dict[str, list[int]]:  # type: ignore[no-untyped-def]
        return {v.name: [d.dim_value for d in v.type.tensor_type.shape.dim] for v in values}

    encoder = onnx.load(PACK / "speech_encoder.onnx").graph
    assert shapes(encoder.input) == {"audio_padded": [1, 64080]}
    assert shapes(encoder.output) == {"audio_features": [1, 100, A]}
    denoiser = onnx.load(PACK / "denoiser.onnx").graph
    assert shapes(denoiser.input) == {
        "motion": [2, 100, V],
        "audio": [2, 100, A],
        "previous_motion": [2, 10, V],
        "previous_audio": [2, 10, A],
        "step": [2],
    }
    assert shapes(denoiser.output) == {"motion_prediction": [2, 110, V]}


def test_the_schedule_is_the_cosine_one(spec: SpeechSpec) -> None:
    with np.load(ROOT / "tests" / "data" / "golden" / "sampler.npz") as golden:
        np.testing.assert_allclose(cosine_schedule(50)[:, 0], golden["alphas"], atol=2e-6)
        np.testing.assert_allclose(cosine_schedule(50)[:, 1], golden["alpha_bars"], atol=1e-5)
    np.testing.assert_allclose(np.stack([spec.alpha, spec.alpha_bar], 1), cosine_schedule(), atol=1e-7)
    assert spec.alpha_bar[1] == spec.alpha[1]


@pytest.mark.parametrize("name", ["speech_encoder.onnx", "denoiser.onnx"])
def test_a_model_has_fewer_than_three_million_parameters(name: str) -> None:
    graph = onnx.load(PACK / name).graph
    assert sum(int(np.prod(t.dims)) for t in graph.initializer if t.data_type == onnx.TensorProto.FLOAT16) < 3e6


def test_the_pack_is_small() -> None:
    assert sum(path.stat().st_size for path in PACK.iterdir() if path.is_file()) < 15e6


def test_features_are_shares_and_say_that_something_was_heard(encoder: Session) -> None:
    audio = np.pad(np.pad(babble(4).astype(np.float32), 20, mode="reflect"), 20, mode="reflect")
    features = encoder.run({"audio": audio[None]})["audio_features"][0]
    np.testing.assert_allclose(features[:, :13].sum(1), 1, atol=1e-4)
    np.testing.assert_allclose(features[:, 13:26].sum(1), 1, atol=1e-4)
    np.testing.assert_array_equal(features[:, HEARD], 1)


@pytest.mark.parametrize(
    "sound", [silence(3), noise(3, 0.001), noise(3, 0.003), noise(3, 0.1), np.cumsum(noise(3, 1e-4))],
    ids=["silence", "hiss", "louder hiss", "loud noise", "rumble"],
)  # fmt: skip
def test_without_a_voice_the_mouth_stays_closed(speak, sound: F64) -> None:  # type: ignore[no-untyped-def]
    lips = speak(sound).expression[:, LIPS]
    assert lips[:, LIPS.index(unit("jawOpen"))].max() < 0.05
    assert np.abs(lips).max() < 0.2


def test_vowels_have_their_shapes(speak) -> None:  # type: ignore[no-untyped-def]
    def held(formants: tuple[int, ...], name: str, pitch: float) -> float:
        sound = np.concatenate([silence(0.4), vowel(0.4, formants, pitch), silence(0.4)])
        return float(speak(sound).expression[12:18, unit(name)].mean())

    for pitch in (110.0, 200.0):
        wide = held(AH, "jawOpen", pitch)
        assert 0.38 < wide < 0.56
        assert held(EE, "jawOpen", pitch) < 0.4 * wide
        assert held(OO, "jawOpen", pitch) < 0.85 * wide
        assert held(EE, "mouthStretchLeft", pitch) > 0.3
        assert held(EE, "mouthPucker", pitch) < 0.05
        assert held(OO, "mouthPucker", pitch) > 0.4
        assert held(OO, "mouthStretchLeft", pitch) < 0.04


def test_a_quiet_recording_opens_the_mouth_like_a_loud_one(speak) -> None:  # type: ignore[no-untyped-def]
    loud = speak(babble(4)).expression[:, unit("jawOpen")]
    quiet = speak(0.1 * babble(4)).expression[:, unit("jawOpen")]
    assert quiet.max() > 0.8 * loud.max()
    assert np.corrcoef(loud, quiet)[0, 1] > 0.95


@pytest.mark.parametrize("start", [0.4, 1.0, 3.36, 3.48, 3.76, 3.88, 9.96], ids=str)
def test_the_mouth_opens_and_closes_with_the_voice(speak, start: float) -> None:  # type: ignore[no-untyped-def]
    sound = np.concatenate([silence(start), vowel(0.4, AH), silence(0.6)])
    jaw = speak(sound).expression[:, unit("jawOpen")]
    half = np.flatnonzero(jaw > jaw.max() / 2)
    first, last = round(start * 25), round(start * 25) + 9
    assert jaw.max() > 0.3
    assert abs(half[0] - first) <= 1
    assert abs(half[-1] - last) <= 1
    assert jaw[: first - 2].max() < 0.05
    assert jaw[last + 3 :].max() < 0.05


@pytest.mark.parametrize(
    ("closed", "frame"),
    [(closed(0.08), frame) for closed in (murmur, silence) for frame in (30, *range(87, 102))],
    ids=[f"{name} {frame}" for name in ("m b", "p") for frame in (30, *range(87, 102))],
)  # fmt: skip
def test_lips_meet_while_the_voice_is_held_back(speak, closed: F64, frame: int) -> None:  # type: ignore[no-untyped-def]
    before = vowel(0.4, AH)
    sound = np.concatenate([silence(frame / 25 - 0.4), before, closed, vowel(0.4, AH), silence(0.3)])
    expression = speak(sound).expression
    assert expression[frame : frame + 2, unit("jawOpen")].min() < 0.05
    assert expression[frame : frame + 2, unit("mouthPressLeft")].max() > 0.07
    assert expression[frame - 5, unit("jawOpen")] > 0.25
    assert expression[frame + 6, unit("jawOpen")] > 0.25


def test_hiss_of_speech_keeps_the_jaw_narrow_and_parts_the_lips(speak) -> None:  # type: ignore[no-untyped-def]
    sharp = np.diff(np.diff(noise(0.3, 0.03)))
    sound = np.concatenate([vowel(0.4, AH), sharp, vowel(0.4, AH), silence(0.5)])
    expression = speak(sound).expression
    assert expression[12:15, unit("jawOpen")].max() < 0.12
    assert expression[12:15, unit("mouthLowerDownLeft")].min() > 0.1


@pytest.fixture(scope="module")
def sample_voice() -> F64:
    with wave.open(str(ROOT / "samples" / "voice.wav")) as file:
        assert (file.getframerate(), file.getnchannels(), file.getsampwidth()) == (RATE, 1, 2)
        return np.frombuffer(file.readframes(file.getnframes()), "<i2") / 32768


def test_the_sample_voice_never_heard_in_training_is_said_by_the_lips(speak, sample_voice: F64) -> None:  # type: ignore[no-untyped-def]
    phones = re.findall(r"([a-z]+):([\d.]+)", (ROOT / "tests" / "data" / "voice_phones.txt").read_text())
    starts = [0.0, *(float(end) for _, end in phones)]
    timed = [(start, arpabet_class(phone)) for start, (phone, _) in zip(starts, phones, strict=False)]
    tally = Tally()
    tally.add(speak(sample_voice).expression, labels(timed, len(sample_voice) // 160))
    assert tally.accuracy > 0.77
    assert tally.recall >= 0.9
    assert tally.precision >= 0.85
    assert tally.opening > 0.85
    assert abs(tally.lag) < 0.2


def test_the_sample_voice_moves_the_mouth_without_lag(speak, sample_voice: F64) -> None:  # type: ignore[no-untyped-def]
    samples = sample_voice
    jaw = speak(samples).expression[:, unit("jawOpen")]
    frames = samples[: len(samples) // FRAME * FRAME].reshape(-1, FRAME)
    loud = np.sqrt((frames**2).mean(1))
    lags = range(-4, 5)
    match = [np.corrcoef(loud[8:-8], np.roll(jaw[: len(loud)], -lag)[8:-8])[0, 1] for lag in lags]
    assert abs(lags[int(np.argmax(match))]) <= 1
    assert max(match) > 0.4
    assert jaw.max() > 0.3
    assert jaw[: len(loud)][loud < 0.003].max(initial=0) < 0.15  # on its way to a vowel after a stop
    assert (jaw < 0.05).mean() > 0.15


def test_lips_are_rounded_and_spread_within_some_frames(speak, sample_voice: F64) -> None:  # type: ignore[no-untyped-def]
    """Where the network changes its mind within a frame: steps were 0.64, between "iy" and "uw"."""
    expression = speak(sample_voice).expression
    pucker = expression[:, unit("mouthPucker")]
    assert pucker.max() > 0.8
    assert np.abs(np.diff(pucker)).max() < 0.4
    assert np.abs(np.diff(expression[:, unit("mouthSmileLeft")])).max() < 0.25


def test_another_seed_moves_the_head_and_not_the_lips(speak) -> None:  # type: ignore[no-untyped-def]
    one, same, other = (speak(babble(6), seed=seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(one.expression, same.expression)
    np.testing.assert_array_equal(one.angles, same.angles)
    np.testing.assert_array_equal(one.expression[:, LIPS], other.expression[:, LIPS])
    assert np.abs(one.angles - other.angles).max() > 0.5
    blink = unit("eyeBlinkLeft")
    assert np.abs(one.expression[:, blink] - other.expression[:, blink]).max() > 0.5


def test_guidance_scales_the_lips(speak) -> None:  # type: ignore[no-untyped-def]
    none, one, more = (speak(babble(3), guidance=scale).expression[:, LIPS] for scale in (0.0, 1.0, 1.3))
    assert np.abs(none).max() < 1e-6
    np.testing.assert_allclose(more, 1.3 * one, atol=1e-5)


def test_the_head_moves_slowly_within_its_range(minute: Motion) -> None:
    pitch, yaw, roll = np.abs(minute.angles).max(0)
    assert 1.0 < pitch < 4
    assert 1.5 < yaw < 6
    assert 0.7 < roll < 4
    assert np.abs(np.diff(minute.angles, axis=0)).max() < 0.5
    assert np.abs(minute.angles[0]).max() < 0.1
    assert np.abs(minute.scale - 1).max() < 0.03
    assert np.abs(minute.translation).max() < 0.04


def test_windows_join_without_a_jump(minute: Motion) -> None:
    turn = np.abs(np.diff(minute.angles, n=2, axis=0))
    joint = np.zeros(len(turn), bool)
    joint[np.concatenate([JOINTS + k for k in range(-2, 11)])] = True
    assert (turn[joint].max(0) < 1.5 * turn[~joint].max(0)).all()
    steps = np.abs(np.diff(minute.expression, axis=0))[: len(joint)]
    assert steps[joint].max() < 1.2 * steps[~joint].max()


def test_lips_do_not_tell_where_windows_join(speak, minute: Motion) -> None:  # type: ignore[no-untyped-def]
    """The same sound later has its joints elsewhere. Without overlap the frames at joints were up to 0.09 apart."""
    late = speak(np.concatenate([silence(45 / 25), babble(64)]), seed=7)
    apart = np.abs(minute.expression - late.expression[45:])[:, LIPS].max(1)
    assert max(apart[JOINTS[:-1] + k].mean() for k in range(-1, 12)) < 0.06


@pytest.mark.parametrize("tune", range(3))
def test_music_leaves_the_mouth_closed(speak, tune: int) -> None:  # type: ignore[no-untyped-def]
    expression = speak(music(np.random.default_rng(100 + tune))[: 8 * RATE]).expression
    assert (lip_gap(expression) > CLOSED_GAP).mean() < 0.02


@pytest.mark.parametrize("made", [music, rumble])
def test_music_that_stops_within_a_window_leaves_the_mouth_closed(speak, made) -> None:  # type: ignore[no-untyped-def]
    ends = (4.4, 4.7, 5.0, 5.3)
    cut = [made(np.random.default_rng(200 + i))[: round(end * RATE)] for i, end in enumerate(ends)]
    gaps = [lip_gap(speak(np.concatenate([sound, silence(0.5)])).expression) for sound in cut]
    assert (np.concatenate(gaps) > CLOSED_GAP).mean() < 0.02


def test_eyes_blink_now_and_then_and_completely(minute: Motion) -> None:
    left, right = minute.expression[:, unit("eyeBlinkLeft")], minute.expression[:, unit("eyeBlinkRight")]
    np.testing.assert_array_equal(left, right)
    edges = np.flatnonzero(np.diff(np.concatenate([[0], left > 0.001, [0]])))
    blinks = edges.reshape(-1, 2)
    assert all(left[a:b].max() > 0.99 for a, b in blinks if b < len(left))
    assert all(6 <= b - a <= 10 for a, b in blinks if b < len(left))
    intervals = np.diff(blinks[:, 0]) / 25
    assert 2.5 < intervals.mean() < 5.5
    assert intervals.min() > 0.5
    assert intervals.std() > 0.1


def test_gaze_rests_and_moves_both_eyes_the_same_way(minute: Motion) -> None:
    out_left, in_right = minute.expression[:, unit("eyeLookOutLeft")], minute.expression[:, unit("eyeLookInRight")]
    np.testing.assert_array_equal(out_left, in_right)
    gaze = out_left - minute.expression[:, unit("eyeLookInLeft")]
    assert 0.05 < np.abs(gaze).max() < 0.5
    assert (np.abs(np.diff(gaze)) < 1e-6).mean() > 0.5


def test_previous_frames_come_back_as_they_were(denoiser: Session) -> None:
    random = np.random.default_rng(2)
    sizes = {"motion": (100, V), "audio": (100, A), "previous_motion": (10, V), "previous_audio": (10, A)}
    inputs = {name: random.standard_normal((2, *size)).astype(np.float32) for name, size in sizes.items()}
    out = denoiser.run({**inputs, "step": np.full(2, STEPS, np.int64)})["motion"]
    np.testing.assert_array_equal(out[:, :10], inputs["previous_motion"])


def test_lips_do_not_look_at_the_noise_nor_at_the_step(denoiser: Session) -> None:
    random = np.random.default_rng(3)
    fixed = {"audio": random.random((2, 100, A)), "previous_motion": np.zeros((2, 10, V)),
             "previous_audio": random.random((2, 10, A))}  # fmt: skip

    def lips(step: int) -> NDArray[np.generic]:
        inputs = {"motion": random.standard_normal((2, 100, V)), **fixed}
        feeds = {name: value.astype(np.float32) for name, value in inputs.items()}
        return denoiser.run({**feeds, "step": np.full(2, step, np.int64)})["motion"][:, 10:, LIPS]

    np.testing.assert_array_equal(lips(1), lips(STEPS))
