"""Jobs on a real fleet: the same film as in one process, whatever happens to the workers."""

from __future__ import annotations

import asyncio
import os
import pickle
import re
import wave
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import psutil
import pytest

from pipeline import NoFaceError, SoundError
from pipeline.errors import SettingsError
from pipeline.packs.pack import Pack
from tests.workers.fleet import (
    PORTRAIT,
    SETTINGS,
    WAIT,
    TestFleet,
    Worker,
    cut_voice,
    made_here,
    running_fleet,
    wait_nothing_left,
    wait_until,
)
from workers.canvas import QUEUES
from workers.client import Job
from workers.errors import JobLostError, JobNotFoundError


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestFleet]:
    """Two workers of one process each."""
    with running_fleet(tmp_path_factory.mktemp("fleet"), "one", "two", odd=True, warm=True) as made:
        yield made


@pytest.fixture(scope="module")
def voice(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """4.2 s: at 25 frames a second three chunks and two segments."""
    return cut_voice(tmp_path_factory.mktemp("voice") / "voice.wav", 4.2)


@pytest.fixture(scope="module")
def local(voice: Path) -> bytes:
    """The film as one process makes it."""
    return made_here(voice, fps=25)


def test_the_film_is_the_same_as_in_one_process(fleet: TestFleet, voice: Path, local: bytes, tmp_path: Path) -> None:
    job = fleet.submit(voice, fps=25)
    report = job.wait(timeout=WAIT)
    assert job.result(tmp_path / "film.webm") == local
    assert (tmp_path / "film.webm").read_bytes() == local
    assert report["frames"]["total"] == report["frames"]["key_frames"] == 105
    assert report["stages"]["generator"]["seconds"] > 0
    assert report["frames"]["carried_on"] == []
    assert job.state == "done"


def test_a_pack_of_networks_makes_the_same_film(fleet: TestFleet, published: Pack, tmp_path: Path) -> None:
    """21 keypoints, stitching, two key frames a second; by the pack's folder."""
    voice, pack = cut_voice(tmp_path / "voice.wav", 1.2), str(published.folder)
    job = fleet.submit(voice, pack=pack)
    report = job.wait(timeout=WAIT)
    assert job.result() == made_here(voice, pack=pack)
    assert report["pack"] == "timeline-studio"
    assert report["frames"]["key_frames"] < report["frames"]["total"] == 6
    assert any("mouth is open" in note for note in report["notes"])


def chunks_done(worker: Worker, job: Job) -> list[int]:
    """Chunks of a job that a worker's log says it rendered."""
    done = rf"Task talkreel\.render\[{job.id}\.render-(\d+)\.\d+\] succeeded in \S+: 'done'"
    return [int(number) for number in re.findall(done, worker.text)]


def test_two_workers_share_a_job(fleet: TestFleet, voice: Path) -> None:
    """One is held in its chunk until the other has rendered another."""
    fleet.hold("mid-render:0")
    job = fleet.submit(voice, seed=6, fps=25)
    fleet.wait_held("mid-render:0")
    wait_until(lambda: job.fleet.jobs.view(job.id).result("render:1") is not None, WAIT, fleet.standing)
    fleet.let_go("mid-render:0")
    job.wait(timeout=WAIT)
    wait_until(lambda: sum(len(chunks_done(worker, job)) for worker in fleet.workers) >= 3, WAIT, fleet.standing)
    done = [chunks_done(worker, job) for worker in fleet.workers]
    assert all(done)
    assert sorted(done[0] + done[1]) == [0, 1, 2]
    assert job.result() == made_here(voice, seed=6, fps=25)


def test_models_are_opened_after_the_fork(fleet: TestFleet, voice: Path) -> None:
    """ONNX Runtime is loaded in the pool's processes alone."""
    fleet.submit(voice, seed=6, fps=25).wait(timeout=WAIT)

    def has_runtime(process: psutil.Process) -> bool:
        return any("onnxruntime" in part.path for part in process.memory_maps())

    for worker in fleet.workers:
        assert not has_runtime(psutil.Process(worker.process.pid))
    assert any(has_runtime(child) for worker in fleet.workers for child in worker.children)


def test_progress_is_real_and_survives_a_late_client(fleet: TestFleet, voice: Path) -> None:
    job = fleet.submit(voice, seed=7)
    job.wait(timeout=WAIT)
    events = list(fleet.client().job(job.id).events(timeout=5))
    assert events[-1].state == "done"
    frames = [event.done for event in events if event.stage == "frames"]
    assert frames == sorted(frames)
    assert frames[-1] == 21
    assert {"sound", "portrait", "motion", "appearance", "frames", "film"} <= {event.stage for event in events}


def test_waiting_with_asyncio(fleet: TestFleet, voice: Path, local: bytes) -> None:
    async def run() -> bytes:
        job = fleet.submit(voice, fps=25)
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
            job = fleet.submit(voice, seed=8)
            for command in monitor.listen():
                words = command["command"]
                if words.startswith("LPUSH"):
                    sizes.append(len(words))
                    assert "application/json" in words
                if job.id in words and '"state": "done"' in words.replace("\\", ""):
                    break
    assert len(sizes) >= 8
    assert max(sizes) < 4096


class Trap:
    """Unpickling it makes a folder."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[object, ...]:
        return os.mkdir, (str(self.mark),)


def test_a_pickled_message_is_not_opened(fleet: TestFleet, voice: Path, tmp_path: Path) -> None:
    """Who can write to the broker cannot run code on the workers; the message is dropped and holds nobody up."""
    client, mark = fleet.client(), tmp_path / "opened"
    assert pickle.loads(pickle.dumps(Trap(tmp_path / "works"))) is None
    assert (tmp_path / "works").is_dir()
    for queue, kind in {queue: kind for kind, queue in QUEUES.items()}.items():
        client.fleet.app.send_task(f"talkreel.{kind}", args=[Trap(mark)], queue=queue, serializer="pickle")
    job = fleet.submit(voice, seed=15)
    job.wait(timeout=WAIT)
    wait_nothing_left(fleet)
    assert not mark.exists()
    assert "Refusing to deserialize" in fleet.logs


def test_nothing_is_left_behind(fleet: TestFleet, voice: Path) -> None:
    job = fleet.submit(voice, seed=9)
    job.wait(timeout=WAIT)
    wait_nothing_left(fleet)
    assert job.status()["bytes"].keys() == {"film"}


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
        fleet.submit(voice, strength=9)
    with pytest.raises(SettingsError, match="priority"):
        fleet.submit(voice, priority="urgent")
    with pytest.raises(SettingsError, match=r"missing\.wav"):
        fleet.submit(Path("missing.wav"))
    assert len(fleet.client().jobs()) == before


def test_forget_erases_everything(fleet: TestFleet, voice: Path) -> None:
    job = fleet.submit(voice, seed=12)
    job.wait(timeout=WAIT)
    wait_nothing_left(fleet)  # other jobs hold the same portrait until their ends were followed up
    order = job.fleet.jobs.order(job.id)
    job.forget()
    with pytest.raises(JobNotFoundError):
        job.status()
    with fleet.server.client() as redis:
        left = [key for key in redis.keys("*") if job.id.encode() in key and b"released" not in key]
        assert left == []
        assert not redis.exists(f"talkreel:artifact:{order.portrait}")


def test_lost_inputs_fail_the_job_with_that_reason(fleet: TestFleet, voice: Path) -> None:
    fleet.hold("hold-sound")  # or it might have been read by then
    job = fleet.submit(voice, seed=14, background=[1, 2, 3])
    fleet.wait_held("hold-sound")
    with fleet.server.client() as redis:
        for key in redis.keys("talkreel:artifact:input:*"):
            redis.delete(key)
    fleet.let_go("hold-sound")
    with pytest.raises(JobLostError, match="portrait or recording"):
        job.wait(timeout=WAIT)


def test_a_message_delivered_twice_does_no_harm(fleet: TestFleet, voice: Path, local: bytes) -> None:
    job = fleet.submit(voice, fps=25)
    for step in ("sound", "portrait", "motion", "render:0", "render:0", "render:1", "encode:0", "mux"):
        job.fleet.publish(job.id, step, "high", 90)
    job.wait(timeout=WAIT)
    assert job.result() == local
