"""The whole path in one process: the film, its repeatability, and what becomes of faults."""

from __future__ import annotations

import json
import os
import threading
import wave
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import av
import numpy as np
import pytest

from pipeline import FirstFrameError, OutputError, PackError, RuntimeOptions, Settings, SoundError, open_pack, render
from pipeline.render import check_output
from pipeline.runtime.binding import Fixed
from pipeline.runtime.models import Models
from pipeline.runtime.places import Place
from pipeline.runtime.providers import CPU
from pipeline.runtime.session import Array, Model
from pipeline.runtime.spent import Spent
from pipeline.studio import Studio
from tests.small_disk import small_disk

OPTIONS = RuntimeOptions(threads=2)
ONE_BY_ONE = RuntimeOptions(threads=1)
"""Runs of the generator in the order of the frames, so that the n-th can be spoiled."""
CROP = Settings(preset="preview", frame="crop", seed=3)


def voice(path: Path, seconds: float, rate: int = 16000) -> Path:
    """A vowel-like sound that swells and fades four times a second."""
    time = np.arange(round(seconds * rate)) / rate
    tone = sum(np.sin(2 * np.pi * 120 * k * time) / k for k in range(1, 20))
    samples = 0.2 * tone * np.sin(2 * np.pi * 2 * time) ** 2
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes((samples * 32767).clip(-32768, 32767).astype("<i2").tobytes())
    return path


@pytest.fixture(scope="session")
def short_voice(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return voice(tmp_path_factory.mktemp("voice") / "short.wav", 0.6)


@pytest.fixture(scope="session")
def studio() -> Studio:
    return Studio(open_pack(), OPTIONS)


def decoded(path: Path) -> list[np.ndarray]:
    with av.open(str(path)) as container:
        return [frame.to_ndarray(format="rgb24") for frame in container.decode(video=0)]


def packets(path: Path) -> list[tuple[int, bytes]]:
    with av.open(str(path)) as container:
        return [(packet.pts, bytes(packet)) for packet in container.demux() if packet.size]


def test_a_portrait_speaks(sample_portrait_path: Path, short_voice: Path, studio: Studio, tmp_path: Path) -> None:
    report = render(sample_portrait_path, short_voice, tmp_path / "film.webm", CROP, studio=studio)
    frames = decoded(tmp_path / "film.webm")
    assert len(frames) == 15
    assert frames[0].shape == (256, 256, 3)
    assert np.abs(frames[0].astype(int) - frames[7]).max() > 20
    data = json.loads(json.dumps(report.to_json()))
    assert data["frames"] == {
        "total": 15, "key_frames": 15, "interpolated": 0, "rendered_again": [], "carried_on": []
    }  # fmt: skip
    assert abs(data["film"]["audio_offset"]) < 0.001
    assert data["film"]["picture_duration"] == pytest.approx(0.6, abs=0.04)
    assert data["film"]["sound_duration"] == pytest.approx(0.6, abs=0.001)
    assert data["stages"]["generator"]["provider"] == "CPUExecutionProvider"
    stages = {"sound", "portrait", "motion", "appearance", "keypoints", "key frames"}
    assert data["stages"].keys() == stages | {"generator", "compositing", "film"}
    assert data["peak_memory"] > 50e6
    assert data["settings"]["seed"] == 3


def test_rendering_twice_gives_the_same_file(sample_portrait_path: Path, short_voice: Path, tmp_path: Path) -> None:
    for name in ("one.webm", "two.webm"):
        render(sample_portrait_path, short_voice, tmp_path / name, CROP, options=OPTIONS)
    assert (tmp_path / "one.webm").read_bytes() == (tmp_path / "two.webm").read_bytes()


def test_threads_do_not_change_the_film(sample_portrait_path: Path, short_voice: Path, tmp_path: Path) -> None:
    for threads in (1, 2):
        options = RuntimeOptions(threads=threads)
        render(sample_portrait_path, short_voice, tmp_path / f"{threads}.webm", CROP, options=options)
    assert packets(tmp_path / "1.webm") == packets(tmp_path / "2.webm")


def test_another_seed_is_another_film(
    sample_portrait_path: Path, short_voice: Path, studio: Studio, tmp_path: Path
) -> None:
    for seed in (0, 1):
        settings = Settings(preset="preview", frame="crop", seed=seed)
        render(sample_portrait_path, short_voice, tmp_path / f"{seed}.webm", settings, studio=studio)
    assert packets(tmp_path / "0.webm") != packets(tmp_path / "1.webm")


def test_the_note_is_on_by_default_and_can_be_left_out(
    sample_portrait_path: Path, short_voice: Path, studio: Studio, tmp_path: Path
) -> None:
    for note in (True, False):
        settings = Settings(preset="preview", frame="crop", synthetic_note=note)
        report = render(sample_portrait_path, short_voice, tmp_path / "film.webm", settings, studio=studio)
        with av.open(str(tmp_path / "film.webm")) as container:
            assert ("synthetic" in container.metadata.get("SYNTHETIC", "")) is note
        assert (report.synthetic is not None) is note


def test_whole_picture_stays_but_for_the_face(
    sample_portrait_path: Path, short_voice: Path, studio: Studio, tmp_path: Path
) -> None:
    settings = Settings(preset="preview")
    render(sample_portrait_path, short_voice, tmp_path / "film.webm", settings, studio=studio)
    frames = [frame.astype(int) for frame in decoded(tmp_path / "film.webm")]
    assert frames[0].shape == (512, 512, 3)
    corner = [frame[-100:, :100] for frame in frames]
    assert max(np.abs(frame - corner[0]).mean() for frame in corner) < 1
    mouth = [frame[135:160, 200:250] for frame in frames]
    assert max(np.abs(frame - mouth[0]).mean() for frame in mouth) > 4


@pytest.mark.parametrize("fps", ["10", "29.97", "50"])
def test_frame_rates(fps: str, sample_portrait_path: Path, short_voice: Path, studio: Studio, tmp_path: Path) -> None:
    settings = Settings(preset="preview", frame="crop", fps=fps)  # type: ignore[arg-type]
    report = render(sample_portrait_path, short_voice, tmp_path / "film.webm", settings, studio=studio)
    frames = decoded(tmp_path / "film.webm")
    assert len(frames) == report.frames.total
    assert len(frames) / float(settings.fps) == pytest.approx(0.6, abs=1 / float(settings.fps))
    assert report.frames.interpolated == {"10": 0, "29.97": 3, "50": 14}[fps]


def test_sparse_key_frames_are_filled(
    sample_portrait_path: Path, short_voice: Path, studio: Studio, tmp_path: Path
) -> None:
    sparse = Settings(preset="preview", frame="crop", seed=3, keyframe_fps=5)
    report = render(sample_portrait_path, short_voice, tmp_path / "sparse.webm", sparse, studio=studio)
    render(sample_portrait_path, short_voice, tmp_path / "dense.webm", CROP, studio=studio)
    assert report.frames.key_frames < 10
    assert report.stages["interpolation"].seconds > 0
    assert report.frames.key_frames + report.frames.interpolated == 15
    filled, full = decoded(tmp_path / "sparse.webm"), decoded(tmp_path / "dense.webm")
    errors = [np.abs(a.astype(int) - b).mean() for a, b in zip(filled, full, strict=True)]
    assert max(errors) < 3


class Faulty:
    """The generator with some of its runs spoiled: run number -> what it returns instead."""

    def __init__(self, model: Model, faults: dict[int, np.ndarray], always: np.ndarray | None = None) -> None:
        self.model = model
        self.faults = faults
        self.always = always
        self.runs = 0

    place = Place("fake.onnx", CPU)
    predicted_bytes = 0

    def spent(self) -> Spent:
        return self.model.spent()

    def side(self, role: str) -> int:
        return self.model.side(role)

    def terminate(self) -> None:
        self.model.terminate()

    def run(self, inputs: dict[str, Array], fixed: Fixed | None = None) -> dict[str, Array]:
        fault = self.faults.get(self.runs, self.always)
        self.runs += 1
        return self.model.run(inputs, fixed) if fault is None else {"image": fault}


class FaultyModels(Models):
    """The embedded pack's models with a faulty generator."""

    def __init__(self, faults: dict[int, np.ndarray], always: np.ndarray | None = None) -> None:
        super().__init__(open_pack(), ONE_BY_ONE)
        self.faulty = Faulty(super().get("generator_256"), faults, always)

    def get(self, name: str, variant: str | None = None) -> Model:
        return self.faulty if name == "generator_256" else super().get(name, variant)


NAN = np.full((1, 3, 256, 256), np.nan, np.float32)
FLAT = np.full((1, 3, 256, 256), 0.5, np.float32)
JUMP = np.indices((256, 256)).sum(0)[None, None].repeat(3, 1).astype(np.float32) % 2


@pytest.mark.parametrize(("fault", "reason"), [(NAN, "not finite"), (FLAT, "flat"), (JUMP, "jump")])
@pytest.mark.parametrize("frame", [0, 6])
def test_a_fault_once_is_rendered_again(
    fault: np.ndarray, reason: str, frame: int, sample_portrait_path: Path, short_voice: Path, tmp_path: Path
) -> None:
    studio = Studio(open_pack(), ONE_BY_ONE, FaultyModels({frame: fault}))
    report = render(sample_portrait_path, short_voice, tmp_path / "film.webm", CROP, studio=studio)
    frames = report.to_json()["frames"]
    assert [entry["frame"] for entry in frames["rendered_again"]] == [frame]
    assert reason in frames["rendered_again"][0]["reasons"][0]
    assert frames["carried_on"] == []
    good = Studio(open_pack(), OPTIONS)
    render(sample_portrait_path, short_voice, tmp_path / "good.webm", CROP, studio=good)
    assert packets(tmp_path / "film.webm") == packets(tmp_path / "good.webm")


@pytest.mark.parametrize("fault", [NAN, FLAT, JUMP])
def test_a_fault_twice_carries_the_last_good_frame_on(
    fault: np.ndarray, sample_portrait_path: Path, short_voice: Path, tmp_path: Path
) -> None:
    studio = Studio(open_pack(), ONE_BY_ONE, FaultyModels({6: fault, 7: fault}))
    report = render(sample_portrait_path, short_voice, tmp_path / "film.webm", CROP, studio=studio)
    frames = report.to_json()["frames"]
    assert [entry["frame"] for entry in frames["carried_on"]] == [6]
    assert frames["rendered_again"] == []
    shown = decoded(tmp_path / "film.webm")
    assert len(shown) == 15
    assert np.abs(shown[6].astype(int) - shown[5]).mean() < 1


@pytest.mark.parametrize(("fault", "reason"), [(NAN, "not finite"), (FLAT, "flat"), (JUMP, "jump")])
def test_a_first_frame_that_stays_bad_fails_and_leaves_nothing(
    fault: np.ndarray, reason: str, sample_portrait_path: Path, short_voice: Path, tmp_path: Path
) -> None:
    studio = Studio(open_pack(), ONE_BY_ONE, FaultyModels({}, always=fault))
    with pytest.raises(FirstFrameError, match=reason):
        render(sample_portrait_path, short_voice, tmp_path / "film.webm", CROP, studio=studio)
    assert list(tmp_path.iterdir()) == []
    assert not [thread for thread in threading.enumerate() if thread.name == "prefetch"]


def test_an_interruption_leaves_nothing(
    sample_portrait_path: Path, short_voice: Path, studio: Studio, tmp_path: Path
) -> None:
    def interrupt(stage: str, done: int, total: int) -> None:
        if stage == "frames" and done == 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        render(sample_portrait_path, short_voice, tmp_path / "film.webm", CROP, studio=studio, on_progress=interrupt)
    assert list(tmp_path.iterdir()) == []


def test_a_disk_that_is_full_leaves_nothing(
    sample_portrait_path: Path, short_voice: Path, studio: Studio, tmp_path: Path
) -> None:
    with small_disk(2000), pytest.raises(OutputError, match=r"film\.webm cannot be written: .* Make room"):
        render(sample_portrait_path, short_voice, tmp_path / "film.webm", CROP, studio=studio)
    assert list(tmp_path.iterdir()) == []
    assert not [thread for thread in threading.enumerate() if thread.name == "prefetch"]


def test_an_older_film_survives_a_failure(sample_portrait_path: Path, studio: Studio, tmp_path: Path) -> None:
    (tmp_path / "film.webm").write_bytes(b"older")
    (tmp_path / "empty.wav").write_bytes(b"")
    with pytest.raises(SoundError):
        render(sample_portrait_path, tmp_path / "empty.wav", tmp_path / "film.webm", CROP, studio=studio)
    assert (tmp_path / "film.webm").read_bytes() == b"older"


def test_films_leave_no_file_open(
    sample_portrait_path: Path, short_voice: Path, studio: Studio, tmp_path: Path
) -> None:
    counts = []
    for name in ("one.webm", "two.webm", "three.webm"):
        render(sample_portrait_path, short_voice, tmp_path / name, CROP, studio=studio)
        counts.append(len(list(Path("/proc/self/fd").iterdir())))
    assert counts[0] == counts[1] == counts[2]


def test_two_films_at_the_same_time(
    sample_portrait_path: Path, short_voice: Path, studio: Studio, tmp_path: Path
) -> None:
    def make(name: str) -> bytes:
        render(sample_portrait_path, short_voice, tmp_path / name, CROP, studio=studio)
        return (tmp_path / name).read_bytes()

    with ThreadPoolExecutor(2) as pool:
        one, two = pool.map(make, ("one.webm", "two.webm"))
    assert one == two == make("three.webm")


def test_progress_has_real_counts(
    sample_portrait_path: Path, short_voice: Path, studio: Studio, tmp_path: Path
) -> None:
    told: list[tuple[str, int, int]] = []
    render(
        sample_portrait_path, short_voice, tmp_path / "film.webm", CROP, studio=studio,
        on_progress=lambda *step: told.append(step),
    )  # fmt: skip
    assert [step for step in told if step[0] == "frames"] == [("frames", n, 15) for n in range(1, 16)]
    assert [step[0] for step in told if step[0] != "frames"] == ["sound", "portrait", "motion", "appearance"]


def test_bad_places_for_the_film(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="is a folder"):
        check_output(tmp_path)
    with pytest.raises(OutputError, match=r"there is no folder .*missing; create it"):
        check_output(tmp_path / "missing" / "film.webm")
    (tmp_path / "file").touch()
    with pytest.raises(OutputError, match="that is a file"):
        check_output(tmp_path / "file" / "film.webm")
    os.mkfifo(tmp_path / "pipe")
    for device in (tmp_path / "pipe", Path(os.devnull)):
        with pytest.raises(OutputError, match="device or a pipe"):
            check_output(device)


def test_a_folder_that_cannot_be_written_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: False)  # for the superuser every folder is writable
    with pytest.raises(OutputError, match="cannot be written to; give another place"):
        check_output(tmp_path / "film.webm")


def test_a_film_does_not_replace_its_input(
    sample_portrait_path: Path, short_voice: Path, studio: Studio, tmp_path: Path
) -> None:
    mine = tmp_path / "voice.wav"
    mine.write_bytes(short_voice.read_bytes())
    (tmp_path / "link.wav").symlink_to(mine)
    for audio in (mine, tmp_path / "link.wav"):
        with pytest.raises(OutputError, match="is an input too"):
            render(sample_portrait_path, audio, mine, CROP, studio=studio)
    assert mine.read_bytes() == short_voice.read_bytes()


def test_an_unknown_preset_is_told_before_any_work(tmp_path: Path, studio: Studio) -> None:
    with pytest.raises(PackError, match="choose one of: preview, quality"):
        render("no picture", "no sound", tmp_path / "film.webm", Settings(preset="huge"), studio=studio)
