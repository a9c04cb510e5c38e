"""A film that must be done by a deadline, in one process. The clock stands still but for the generators, which take
a second a frame, or a tenth: so every forecast is exact."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pipeline import OutOfTimeError, Report, RuntimeOptions, Settings, SettingsError, open_pack, render
from pipeline.cli.main import main
from pipeline.cli.render import summary
from pipeline.deadline import Deadline
from pipeline.pace import decide_here
from pipeline.runtime.binding import Fixed
from pipeline.runtime.models import Models
from pipeline.runtime.session import Array, Model
from pipeline.stages.sound import read_sound
from pipeline.studio import Studio
from pipeline.values import Appearance, Motion, Portrait
from tests.media import tone, write_wav

ASKED = Settings(preset="quality", frame="crop", fps=10, max_side=64)  # type: ignore[arg-type]
"""Ten frames of a second. Key frames n frames apart: 6, 4, 4, 3, ... of them."""

SECONDS = {"generator_512": 1.0, "generator_256": 0.1}


class Clock:
    """Time as the tests have it."""

    def __init__(self) -> None:
        self.now = 0.0
        self.slower_from = float("inf")

    def __call__(self) -> float:
        return self.now


class Timed:
    """A model whose runs take as long as the test says. The large one makes one picture only, to be quick."""

    def __init__(self, model: Model, seconds: float, clock: Clock) -> None:
        self._model, self._seconds, self._clock = model, seconds, clock
        self._picture: dict[str, Array] | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)

    def run(self, inputs: Mapping[str, Array], fixed: Fixed | None = None) -> dict[str, Array]:
        self._clock.now += self._seconds * (10 if self._clock.now >= self._clock.slower_from else 1)
        if self._picture is None or self._seconds < 1:
            self._picture = self._model.run(inputs, fixed)
        return self._picture


class TimedModels(Models):
    def __init__(self, clock: Clock) -> None:
        super().__init__(open_pack(), RuntimeOptions(threads=1))
        self._clock = clock
        self._timed: dict[str, Timed] = {}

    def get(self, name: str, variant: str | None = None) -> Model:
        if name in SECONDS and name not in self._timed:
            self._timed[name] = Timed(super().get(name, variant), SECONDS[name], self._clock)
        return self._timed.get(name) or super().get(name, variant)


@pytest.fixture(scope="module")
def models() -> tuple[TimedModels, Clock]:
    """Opened once."""
    clock = Clock()
    return TimedModels(clock), clock


@pytest.fixture
def clock(models: tuple[TimedModels, Clock], monkeypatch: pytest.MonkeyPatch) -> Clock:
    _, clock = models
    clock.now, clock.slower_from = 0.0, float("inf")
    monkeypatch.setattr("pipeline.deadline.monotonic", clock)
    monkeypatch.setattr("pipeline.pace.perf_counter", clock)
    return clock


@pytest.fixture(scope="module")
def voice(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_wav(tmp_path_factory.mktemp("voice") / "voice.wav", tone(1, 16000), 16000)


@pytest.fixture(scope="module")
def motion(voice: Path, models: tuple[TimedModels, Clock]) -> Motion:
    """The voice's motion, made once: it takes longer than all the rest."""
    studio = Studio(open_pack(), RuntimeOptions(threads=1), models[0])
    return studio.make_motion(read_sound(voice)[0], ASKED, Report(), lambda *_: None)


@pytest.fixture(scope="module")
def appearance(sample: Portrait, models: tuple[TimedModels, Clock]) -> Appearance:
    return Studio(open_pack(), RuntimeOptions(threads=1), models[0]).make_appearance(sample, Report())


@pytest.fixture
def studio(
    models: tuple[TimedModels, Clock],
    clock: Clock,
    motion: Motion,
    appearance: Appearance,
    monkeypatch: pytest.MonkeyPatch,
) -> Studio:
    """Key frames of the even grid alone, so that their number is plain."""
    studio = Studio(open_pack(), RuntimeOptions(threads=1), models[0])
    studio.key_frames = replace(studio.key_frames, extra_percentile=100, greatest_miss=100, least_fps=1)
    monkeypatch.setattr(studio, "make_motion", lambda *_, **__: motion)
    monkeypatch.setattr(studio, "make_appearance", lambda *_: appearance)
    return studio


@pytest.mark.parametrize(
    ("seconds", "changes", "frames"),
    [
        (14, {}, 10),
        (10, {"keyframe_fps": [10, 5]}, 6),
        (4, {"preset": ["quality", "preview"]}, 10),
        (3.4, {"keyframe_fps": [10, 5], "preset": ["quality", "preview"]}, 6),
    ],
)
def test_what_there_is_time_for(
    seconds: float,
    changes: dict[str, list[object]],
    frames: int,
    studio: Studio,
    motion: Motion,
    appearance: Appearance,
    sample: Portrait,
) -> None:
    """Two frames are measured first, and where they are too slow, six of the preview."""
    scene = studio.scene(appearance, motion, 1.0, ASKED)
    decision = decide_here(scene, sample, Deadline(seconds))
    assert decision.lowered == changes
    assert decision.chosen.key_frames == frames
    assert decision.chosen.key_frame == pytest.approx(0.1 if "preset" in changes else 1)
    assert decision.tried[0].seconds == pytest.approx(10)


def test_the_film_is_the_one_of_the_lowered_settings(
    sample_portrait_path: Path, voice: Path, studio: Studio, tmp_path: Path
) -> None:
    notes: list[str] = []
    report = render(
        sample_portrait_path, voice, tmp_path / "in-time.webm", ASKED,
        studio=studio, deadline=3.4, on_note=notes.append,
    )  # fmt: skip
    settings = replace(ASKED, preset="preview", keyframe_fps=5)
    assert report.settings == settings.to_json()
    assert report.frames.key_frames == 6
    assert json.loads(json.dumps(report.to_json()))["budget"]["note"] == notes[0]
    assert notes[0] in summary(tmp_path / "in-time.webm", report)
    again = render(sample_portrait_path, voice, tmp_path / "asked.webm", settings, studio=studio)
    assert again.budget is None
    assert (tmp_path / "in-time.webm").read_bytes() == (tmp_path / "asked.webm").read_bytes()


def test_what_cannot_be_done_is_not_begun(
    sample_portrait_path: Path, voice: Path, studio: Studio, tmp_path: Path
) -> None:
    told: list[str] = []
    with pytest.raises(
        OutOfTimeError,
        match=r"^even with preset preview and 1 key frames a second .* 0\.2 s \(2 key frames of 0\.1 s\), and 0\.1 s",
    ):
        render(
            sample_portrait_path, voice, tmp_path / "film.webm", ASKED,
            studio=studio, deadline=2.7, on_progress=lambda stage, *_: told.append(stage),
        )  # fmt: skip
    assert "frames" not in told
    assert list(tmp_path.iterdir()) == []


def test_what_is_late_in_spite_of_all_ends_and_leaves_nothing(
    sample_portrait_path: Path, voice: Path, studio: Studio, clock: Clock, tmp_path: Path
) -> None:
    clock.slower_from = 4
    with pytest.raises(OutOfTimeError, match=r"not done within 14 s, it was at frames, 4 of 10; give more time"):
        render(sample_portrait_path, voice, tmp_path / "film.webm", ASKED, studio=studio, deadline=14)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("deadline", [0, -1, float("nan"), 1e9])
def test_a_deadline_that_is_none(deadline: float, tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"deadline .* give seconds above 0"):
        render("no picture", "no sound", tmp_path / "film.webm", deadline=deadline)


def test_the_command_line(
    sample_portrait_path: Path, voice: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["render", str(sample_portrait_path), str(voice), "-o", str(tmp_path / "film.webm"), "--quiet"]
    assert main([*words, "--deadline", "0.01"]) == 4
    assert "not done within 0.01 s, it was at sound" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
