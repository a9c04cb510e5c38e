"""The whole path in one process: the film, its repeatability, and what becomes of faults."""

from __future__ import annotations

import json
import threading
import wave
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

import av
import numpy as np
import pytest

from pipeline import FirstFrameError, OutputError, PackError, RuntimeOptions, Settings, SoundError, open_pack, render
from pipeline.render import check_output
from pipeline.report import Report
from pipeline.stages.film_format import exact_fps
from pipeline.studio import Studio
from tests.pipeline.studios import ONE_BY_ONE, FaultyModels, Prepared
from tests.small_disk import small_disk

OPTIONS = RuntimeOptions(threads=2)
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


@pytest.fixture(scope="session")
def prepared() -> Prepared:
    return Prepared(open_pack(), OPTIONS)


@dataclass(frozen=True)
class Made:
    """A film, and what was told while it was made."""

    path: Path
    report: Report
    told: list[tuple[str, int, int]]


@pytest.fixture(scope="session")
def reference(
    sample_portrait_path: Path, short_voice: Path, studio: Studio, tmp_path_factory: pytest.TempPathFactory
) -> Made:
    """The film that others are compared with."""
    path, told = tmp_path_factory.mktemp("reference") / "film.webm", list[tuple[str, int, int]]()
    report = render(
        sample_portrait_path, short_voice, path, CROP, studio=studio, on_progress=lambda *step: told.append(step)
    )
    return Made(path, report, told)


@pytest.fixture(scope="session")
def other(
    sample_portrait_path: Path, short_voice: Path, studio: Studio, tmp_path_factory: pytest.TempPathFactory
) -> Made:
    """Of another seed, without the note."""
    path = tmp_path_factory.mktemp("other") / "film.webm"
    settings = replace(CROP, seed=1, synthetic_note=False)
    return Made(path, render(sample_portrait_path, short_voice, path, settings, studio=studio), [])


def decoded(path: Path) -> list[np.ndarray]:
    with av.open(str(path)) as container:
        return [frame.to_ndarray(format="rgb24") for frame in container.decode(video=0)]


def packets(path: Path) -> list[tuple[int, bytes]]:
    with av.open(str(path)) as container:
        return [(packet.pts, bytes(packet)) for packet in container.demux() if packet.size]


def test_a_portrait_speaks(reference: Made) -> None:
    frames = decoded(reference.path)
    assert len(frames) == 15
    assert frames[0].shape == (256, 256, 3)
    assert np.abs(frames[0].astype(int) - frames[7]).max() > 20
    data = json.loads(json.dumps(reference.report.to_json()))
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


def test_rendering_twice_gives_the_same_file(
    sample_portrait_path: Path, short_voice: Path, reference: Made, tmp_path: Path
) -> None:
    """Also with other sessions of the models."""
    render(sample_portrait_path, short_voice, tmp_path / "film.webm", CROP, options=OPTIONS)
    assert (tmp_path / "film.webm").read_bytes() == reference.path.read_bytes()


def test_threads_do_not_change_the_film(
    sample_portrait_path: Path, short_voice: Path, reference: Made, tmp_path: Path
) -> None:
    render(sample_portrait_path, short_voice, tmp_path / "film.webm", CROP, options=ONE_BY_ONE)
    assert packets(tmp_path / "film.webm") == packets(reference.path)


def test_another_seed_is_another_film(reference: Made, other: Made) -> None:
    assert packets(other.path) != packets(reference.path)


def test_the_note_is_on_by_default_and_can_be_left_out(reference: Made, other: Made) -> None:
    assert Settings().synthetic_note
    for made, note in ((reference, True), (other, False)):
        with av.open(str(made.path)) as container:
            assert ("synthetic" in container.metadata.get("SYNTHETIC", "")) is note
        assert (made.report.synthetic is not None) is note


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
def test_frame_rates(fps: str, sample_portrait_path: Path, short_voice: Path, prepared: Studio, tmp_path: Path) -> None:
    settings = replace(CROP, fps=exact_fps(fps))
    report = render(sample_portrait_path, short_voice, tmp_path / "film.webm", settings, studio=prepared)
    frames = decoded(tmp_path / "film.webm")
    assert len(frames) == report.frames.total
    assert len(frames) / float(settings.fps) == pytest.approx(0.6, abs=1 / float(settings.fps))
    assert report.frames.interpolated == {"10": 0, "29.97": 3, "50": 14}[fps]


def test_sparse_key_frames_are_filled(
    sample_portrait_path: Path, short_voice: Path, prepared: Studio, reference: Made, tmp_path: Path
) -> None:
    sparse = replace(CROP, keyframe_fps=5)
    report = render(sample_portrait_path, short_voice, tmp_path / "sparse.webm", sparse, studio=prepared)
    assert report.frames.key_frames < 10
    assert report.stages["interpolation"].seconds > 0
    assert report.frames.key_frames + report.frames.interpolated == 15
    filled, full = decoded(tmp_path / "sparse.webm"), decoded(reference.path)
    errors = [np.abs(a.astype(int) - b).mean() for a, b in zip(filled, full, strict=True)]
    assert max(errors) < 3


NAN = np.full((1, 3, 256, 256), np.nan, np.float32)
FLAT = np.full((1, 3, 256, 256), 0.5, np.float32)
JUMP = np.indices((256, 256)).sum(0)[None, None].repeat(3, 1).astype(np.float32) % 2


REASONS = [(NAN, "not finite"), (FLAT, "flat"), (JUMP, "jump")]


@pytest.fixture(scope="session")
def faulty_models() -> FaultyModels:
    return FaultyModels()


@pytest.fixture(scope="session")
def faulty_studio(faulty_models: FaultyModels) -> Studio:
    return Prepared(open_pack(), ONE_BY_ONE, faulty_models)


@pytest.mark.parametrize(("fault", "reason"), REASONS)
def test_faults_once_are_rendered_again(
    fault: np.ndarray,
    reason: str,
    sample_portrait_path: Path,
    short_voice: Path,
    faulty_models: FaultyModels,
    faulty_studio: Studio,
    reference: Made,
    tmp_path: Path,
) -> None:
    """In the first frame, and in the seventh, which is the eighth run."""
    faulty_models.faulty.spoil({0: fault, 7: fault})
    report = render(sample_portrait_path, short_voice, tmp_path / "film.webm", CROP, studio=faulty_studio)
    frames = report.to_json()["frames"]
    assert [entry["frame"] for entry in frames["rendered_again"]] == [0, 6]
    for entry in frames["rendered_again"]:
        assert reason in entry["reasons"][0]
    assert frames["carried_on"] == []
    assert packets(tmp_path / "film.webm") == packets(reference.path)


def test_faults_twice_carry_the_last_good_frame_on(
    sample_portrait_path: Path,
    short_voice: Path,
    faulty_models: FaultyModels,
    faulty_studio: Studio,
    tmp_path: Path,
) -> None:
    faulty_models.faulty.spoil({3: NAN, 4: NAN, 8: FLAT, 9: FLAT, 13: JUMP, 14: JUMP})
    report = render(sample_portrait_path, short_voice, tmp_path / "film.webm", CROP, studio=faulty_studio)
    frames = report.to_json()["frames"]
    assert [entry["frame"] for entry in frames["carried_on"]] == [3, 7, 11]
    for entry, (_, reason) in zip(frames["carried_on"], REASONS, strict=True):
        assert reason in entry["reasons"][0]
    assert frames["rendered_again"] == []
    shown = decoded(tmp_path / "film.webm")
    assert len(shown) == 15
    for frame in (3, 7, 11):
        assert np.abs(shown[frame].astype(int) - shown[frame - 1]).mean() < 1


@pytest.mark.parametrize(("fault", "reason"), REASONS)
def test_a_first_frame_that_stays_bad_fails_and_leaves_nothing(
    fault: np.ndarray,
    reason: str,
    sample_portrait_path: Path,
    short_voice: Path,
    faulty_models: FaultyModels,
    faulty_studio: Studio,
    tmp_path: Path,
) -> None:
    faulty_models.faulty.spoil({}, always=fault)
    with pytest.raises(FirstFrameError, match=reason):
        render(sample_portrait_path, short_voice, tmp_path / "film.webm", CROP, studio=faulty_studio)
    assert list(tmp_path.iterdir()) == []
    assert not [thread for thread in threading.enumerate() if thread.name == "prefetch"]


def test_an_interruption_leaves_nothing(
    sample_portrait_path: Path, short_voice: Path, prepared: Studio, tmp_path: Path
) -> None:
    def interrupt(stage: str, done: int, total: int) -> None:
        if stage == "frames" and done == 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        render(sample_portrait_path, short_voice, tmp_path / "film.webm", CROP, studio=prepared, on_progress=interrupt)
    assert list(tmp_path.iterdir()) == []


def test_a_disk_that_is_full_leaves_nothing(
    sample_portrait_path: Path, short_voice: Path, prepared: Studio, tmp_path: Path
) -> None:
    with small_disk(2000), pytest.raises(OutputError, match=r"film\.webm cannot be written: .* Make room"):
        render(sample_portrait_path, short_voice, tmp_path / "film.webm", CROP, studio=prepared)
    assert list(tmp_path.iterdir()) == []
    assert not [thread for thread in threading.enumerate() if thread.name == "prefetch"]


def test_an_older_film_survives_a_failure(sample_portrait_path: Path, studio: Studio, tmp_path: Path) -> None:
    (tmp_path / "film.webm").write_bytes(b"older")
    (tmp_path / "empty.wav").write_bytes(b"")
    with pytest.raises(SoundError):
        render(sample_portrait_path, tmp_path / "empty.wav", tmp_path / "film.webm", CROP, studio=studio)
    assert (tmp_path / "film.webm").read_bytes() == b"older"


def test_films_leave_no_file_open(
    sample_portrait_path: Path, short_voice: Path, prepared: Studio, tmp_path: Path
) -> None:
    counts = []
    for name in ("one.webm", "two.webm", "three.webm"):
        render(sample_portrait_path, short_voice, tmp_path / name, CROP, studio=prepared)
        counts.append(len(list(Path("/proc/self/fd").iterdir())))
    assert counts[0] == counts[1] == counts[2]


def test_two_films_at_the_same_time(
    sample_portrait_path: Path, short_voice: Path, studio: Studio, reference: Made, tmp_path: Path
) -> None:
    def make(name: str) -> bytes:
        render(sample_portrait_path, short_voice, tmp_path / name, CROP, studio=studio)
        return (tmp_path / name).read_bytes()

    with ThreadPoolExecutor(2) as pool:
        one, two = pool.map(make, ("one.webm", "two.webm"))
    assert one == two == reference.path.read_bytes()


def test_progress_has_real_counts(reference: Made) -> None:
    told = reference.told
    assert [step for step in told if step[0] == "frames"] == [("frames", n, 15) for n in range(1, 16)]
    assert [step[0] for step in told if step[0] != "frames"] == ["sound", "portrait", "motion", "appearance"]


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


def test_a_name_may_be_as_long_as_the_file_system_lets_it(
    sample_portrait_path: Path, short_voice: Path, studio: Studio, tmp_path: Path
) -> None:
    with pytest.raises(OutputError, match="File name too long"):
        check_output(tmp_path / ("x" * 256))
    long = tmp_path / ("é" * 125 + ".webm")
    render(sample_portrait_path, short_voice, long, CROP, studio=studio)
    assert list(tmp_path.iterdir()) == [long]


def test_an_unknown_preset_is_told_before_any_work(tmp_path: Path, studio: Studio) -> None:
    with pytest.raises(PackError, match="choose one of: preview, quality"):
        render("no picture", "no sound", tmp_path / "film.webm", Settings(preset="huge"), studio=studio)
