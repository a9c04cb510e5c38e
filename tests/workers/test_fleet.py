"""Jobs on a real fleet: the same film as in one process, whatever happens to the workers."""

from __future__ import annotations

import asyncio
import wave
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pipeline import NoFaceError, RuntimeOptions, Settings, SoundError, render
from pipeline.errors import SettingsError
from tests.workers.fleet import TestFleet, running_fleet, step_running, wait_until
from workers.client import Job
from workers.errors import DeadlineError, JobCancelledError, JobLostError, JobNotFoundError

ROOT = Path(__file__).parents[2]
PORTRAIT = ROOT / "samples" / "portrait.png"
SETTINGS = {"preset": "preview", "frame": "crop", "seed": 5}
WAIT = 120.0


def cut_voice(path: Path, seconds: float) -> Path:
    """The sample voice, repeated or cut to this length."""
    with wave.open(str(ROOT / "samples" / "voice.wav")) as sample:
        rate, frames = sample.getframerate(), sample.readframes(sample.getnframes())
    wanted = round(seconds * rate) * 2
    with wave.open(str(path), "wb") as out:
        out.setnchannels(1)
        out.setsampwidth(2)
        out.setframerate(rate)
        out.writeframes((frames * (wanted // len(frames) + 1))[:wanted])
    return path


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestFleet]:
    """Two workers of one process each."""
    with running_fleet(tmp_path_factory.mktemp("fleet"), "one", "two") as made:
        yield made


@pytest.fixture(scope="module")
def voice(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """5 s: three chunks, two segments."""
    return cut_voice(tmp_path_factory.mktemp("voice") / "voice.wav", 5)


@pytest.fixture(scope="module")
def local(voice: Path, tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The film as one process makes it."""
    path = tmp_path_factory.mktemp("local") / "film.webm"
    render(PORTRAIT, voice, path, Settings.from_json({**Settings().to_json(), **SETTINGS}), options=RuntimeOptions(1))
    return path.read_bytes()


def submit(fleet: TestFleet, voice: Path, **changes: object) -> Job:
    return fleet.client().submit(PORTRAIT, voice, **{**SETTINGS, **changes})


def test_the_film_is_the_same_as_in_one_process(fleet: TestFleet, voice: Path, local: bytes, tmp_path: Path) -> None:
    job = submit(fleet, voice)
    report = job.wait(timeout=WAIT)
    assert job.result(tmp_path / "film.webm") == local
    assert (tmp_path / "film.webm").read_bytes() == local
    assert report["frames"]["total"] == report["frames"]["key_frames"] == 125
    assert report["stages"]["generator"]["seconds"] > 0
    assert report["frames"]["carried_on"] == []
    assert job.state == "done"


def test_two_workers_share_a_job(fleet: TestFleet, voice: Path) -> None:
    job = submit(fleet, voice, seed=6)
    job.wait(timeout=WAIT)
    for worker in fleet.workers:
        assert job.id in worker.text


def test_progress_is_real_and_survives_a_late_client(fleet: TestFleet, voice: Path) -> None:
    job = submit(fleet, voice, seed=7)
    job.wait(timeout=WAIT)
    events = list(fleet.client().job(job.id).events(timeout=5))
    assert events[-1].state == "done"
    frames = [event.done for event in events if event.stage == "frames"]
    assert sorted(frames)[-1] == 125
    assert {"sound", "portrait", "motion", "appearance", "frames", "film"} <= {event.stage for event in events}


def test_waiting_with_asyncio(fleet: TestFleet, voice: Path, local: bytes) -> None:
    async def run() -> bytes:
        job = submit(fleet, voice)
        seen = []
        await job.wait_async(seen.append, timeout=WAIT)
        assert seen[-1].state == "done"
        return job.result()

    assert asyncio.run(run()) == local


def test_messages_are_small_json_without_media(fleet: TestFleet, voice: Path) -> None:
    with fleet.server.client() as redis:
        redis.config_set("slowlog-log-slower-than", -1)
        monitor = fleet.server.client().monitor()
        sizes = []
        with monitor:
            job = submit(fleet, voice, seed=8)
            for command in monitor.listen():
                words = command["command"]
                if words.startswith("LPUSH"):
                    sizes.append(len(words))
                    assert "application/json" in words
                if job.id in words and '"state": "done"' in words.replace("\\", ""):
                    break
    assert len(sizes) >= 8
    assert max(sizes) < 4096


def test_nothing_is_left_behind(fleet: TestFleet, voice: Path) -> None:
    job = submit(fleet, voice, seed=9)
    job.wait(timeout=WAIT)
    wait_until(lambda: job.status()["bytes"].keys() == {"film"}, 10, str(job.status()))
    with fleet.server.client() as redis:
        ours = [key for key in redis.keys("*") if not key.startswith(b"_kombu") and b"pidbox" not in key]
        assert [key for key in ours if redis.ttl(key) == -1] == []
        assert redis.hlen("unacked") == 0


def test_errors_are_the_librarys_own(fleet: TestFleet, voice: Path, tmp_path: Path) -> None:
    grey = tmp_path / "grey.png"
    from PIL import Image

    Image.new("RGB", (300, 300), "grey").save(grey)
    with pytest.raises(NoFaceError, match=r"grey\.png"):
        fleet.client().submit(grey, voice, **SETTINGS).wait(timeout=WAIT)
    silent = tmp_path / "silent.wav"
    with wave.open(str(silent), "wb") as out:
        out.setnchannels(1)
        out.setsampwidth(2)
        out.setframerate(16000)
        out.writeframes(np.zeros(32000, "<i2").tobytes())
    with pytest.raises(SoundError, match=r"silent\.wav is silent"):
        fleet.client().submit(PORTRAIT, silent, **SETTINGS).wait(timeout=WAIT)


def test_bad_input_is_refused_before_anything_is_queued(fleet: TestFleet, voice: Path) -> None:
    before = len(fleet.client().jobs())
    with pytest.raises(SoundError):
        fleet.client().submit(PORTRAIT, PORTRAIT, **SETTINGS)
    with pytest.raises(SettingsError, match="strength"):
        submit(fleet, voice, strength=9)
    with pytest.raises(SettingsError, match="priority"):
        submit(fleet, voice, priority="urgent")
    with pytest.raises(SettingsError, match=r"missing\.wav"):
        submit(fleet, Path("missing.wav"))
    assert len(fleet.client().jobs()) == before


@pytest.mark.parametrize("stage", ["sound", "motion", "appearance", "render", "encode"])
def test_cancel_in_every_stage(stage: str, fleet: TestFleet, tmp_path: Path, voice: Path) -> None:
    path = cut_voice(tmp_path / "long.wav", 40)
    job = submit(fleet, path, seed=100, preset="quality")
    wait_until(lambda: step_running(job, stage) or job.state != "running", WAIT, f"{stage} never ran\n{fleet.logs}")
    job.cancel()
    with pytest.raises(JobCancelledError):
        job.wait(timeout=5)
    wait_until(lambda: not job.status()["bytes"], 5, str(job.status()))
    submit(fleet, voice, seed=11).wait(timeout=WAIT)  # the workers are well


def test_a_deadline_ends_the_job(fleet: TestFleet, tmp_path: Path) -> None:
    job = submit(fleet, cut_voice(tmp_path / "long.wav", 40), preset="quality", deadline=3)
    with pytest.raises(DeadlineError, match="deadline of 3 s"):
        job.wait(timeout=15)
    wait_until(lambda: not job.status()["bytes"], 5, str(job.status()))


def test_forget_erases_everything(fleet: TestFleet, voice: Path) -> None:
    job = submit(fleet, voice, seed=12)
    job.wait(timeout=WAIT)
    order = job.fleet.jobs.order(job.id)
    job.forget()
    with pytest.raises(JobNotFoundError):
        job.status()
    with fleet.server.client() as redis:
        left = [key for key in redis.keys("*") if job.id.encode() in key and b"released" not in key]
        assert left == []
        assert not redis.exists(f"talkreel:artifact:{order.portrait}")


def test_lost_artifacts_are_made_again(fleet: TestFleet, tmp_path: Path) -> None:
    path = cut_voice(tmp_path / "voice.wav", 12)
    job = submit(fleet, path, seed=13)
    wait_until(lambda: step_running(job, "render"), WAIT, fleet.logs)
    with fleet.server.client() as redis:
        for kind in ("motion", "appearance", "sound", "portrait", "plan", "frames"):
            for key in redis.keys(f"talkreel:artifact:{kind}:*"):
                redis.delete(key)
    job.wait(timeout=WAIT)
    whole = tmp_path / "film.webm"
    settings = Settings.from_json({**Settings().to_json(), **SETTINGS, "seed": 13})
    render(PORTRAIT, path, whole, settings, options=RuntimeOptions(1))
    assert job.result() == whole.read_bytes()


def test_lost_inputs_fail_the_job_with_that_reason(fleet: TestFleet, voice: Path) -> None:
    client = fleet.client()
    job = client.submit(PORTRAIT, voice, **{**SETTINGS, "seed": 14, "background": [1, 2, 3]})
    with fleet.server.client() as redis:
        for key in redis.keys("talkreel:artifact:input:*"):
            redis.delete(key)
    with pytest.raises(JobLostError, match="portrait or recording"):
        job.wait(timeout=WAIT)


def test_a_message_delivered_twice_does_no_harm(fleet: TestFleet, voice: Path, local: bytes) -> None:
    job = submit(fleet, voice)
    for step in ("sound", "portrait", "motion", "render:0", "render:0", "render:1", "encode:0", "mux"):
        job.fleet.publish(job.id, step, "high", 90)
    job.wait(timeout=WAIT)
    assert job.result() == local


def test_another_version_hands_the_job_back(fleet: TestFleet, voice: Path) -> None:
    client = fleet.client()
    made = submit(fleet, voice, seed=15)
    made.wait(timeout=WAIT)
    order = replace(
        client.fleet.jobs.order(made.id), job="upgraded", code="0.0.0+other", submitted=client.fleet.jobs.now()
    )
    client.fleet.jobs.create(order)
    client.fleet.advance("upgraded")
    job = client.job("upgraded")

    def noted() -> bool:
        steps = client.fleet.jobs.view("upgraded").steps.values()
        return any(state.status == "handed back" and "0.0.0+other" in state.note for state in steps)

    wait_until(noted, 20, fleet.logs)
    assert job.state == "running"
    job.cancel()
