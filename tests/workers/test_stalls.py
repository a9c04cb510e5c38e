"""A job that stands still says so: which step, on which worker or in which queue."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from pipeline.cli.main import main
from tests.workers.fleet import WAIT, TestFleet, cut_voice, made_here, running_fleet, wait_until
from workers import job_view
from workers.client import Job
from workers.commands import watch
from workers.commands.watch import follow


@pytest.fixture(scope="module")
def voice(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return cut_voice(tmp_path_factory.mktemp("voice") / "voice.wav", 1)


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestFleet]:
    """One worker, that takes no segments to encode."""
    queues = "media,motion,render"
    with running_fleet(tmp_path_factory.mktemp("fleet"), "one", odd=True, queues=queues) as made:
        yield made


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """What counts as stalled is the reader's to say."""
    monkeypatch.setattr(job_view, "STALLED", 4.0)


class Reader:
    """What the command says of a job."""

    def __init__(self, fleet: TestFleet, capsys: pytest.CaptureFixture[str]) -> None:
        self.fleet, self.capsys = fleet, capsys

    def told(self, job: Job, *words: str) -> str:
        assert main(["status", job.id, "--url", self.fleet.server.url, *words]) == 0
        return self.capsys.readouterr().out

    def stalled(self, job: Job) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads(self.told(job, "--json"))["stalled"]
        return found

    def wait_stalled(self, job: Job, step: str, status: str) -> dict[str, Any]:
        """What is said of a step, once it stands still with this status; others may wait behind it."""
        found: list[dict[str, Any]] = []

        def stalled() -> bool:
            found[:] = [item for item in self.stalled(job) if (item["step"], item["status"]) == (step, status)]
            return bool(found)

        wait_until(stalled, WAIT, lambda: f"{step} does not stall\n{self.fleet.standing()}")
        return found[0]


@pytest.fixture
def reader(fleet: TestFleet, capsys: pytest.CaptureFixture[str]) -> Reader:
    return Reader(fleet, capsys)


def test_a_step_that_hangs_is_named_with_its_worker(fleet: TestFleet, voice: Path, reader: Reader) -> None:
    """Its lease is renewed all the while: the process is well, the work is not."""
    fleet.hold("block-motion")
    job = fleet.submit(voice, seed=31)
    pid = fleet.wait_held("block-motion")
    item = reader.wait_stalled(job, "motion", "running")
    assert (item["worker"], item["queue"]) == ("one@test", "motion")
    assert f"/{pid}/" in item["process"]
    assert "motion on worker one@test" in reader.told(job)
    assert main(["jobs", "--url", fleet.server.url]) == 0
    assert reader.capsys.readouterr().out.rstrip().endswith("stalled")
    job.cancel()
    fleet.let_go("block-motion")


def test_a_step_at_work_does_not_stall(fleet: TestFleet, voice: Path, reader: Reader) -> None:
    """However long it takes: it asks now and then whether it shall go on."""
    fleet.hold("hold-motion")
    job = fleet.submit(voice, seed=32)
    fleet.wait_held("hold-motion")
    jobs = job.fleet.jobs

    def age() -> float:
        view = jobs.view(job.id)
        return view.now - view.steps["motion"].begun

    def at_work() -> bool:
        return age() > 1.5 * job_view.STALLED and "motion" not in [item["step"] for item in reader.stalled(job)]

    wait_until(at_work, WAIT, lambda: str(job.status()))
    job.cancel()
    fleet.let_go("hold-motion")


def test_a_step_whose_process_stands_still_is_named_with_its_worker(
    fleet: TestFleet, voice: Path, reader: Reader
) -> None:
    """Nobody renews its lease: it is sent again, and there is no other worker."""
    fleet.hold("hold-render:0")
    job = fleet.submit(voice, seed=33)
    pid = fleet.wait_held("hold-render:0")
    os.kill(pid, signal.SIGSTOP)
    try:
        item = reader.wait_stalled(job, "render:0", "sent")
        assert (item["worker"], item["queue"]) == ("one@test", "render")
        assert "render:0 waits for a worker of queue render, given up by worker one@test" in reader.told(job)
    finally:
        os.kill(pid, signal.SIGCONT)
        fleet.let_go("hold-render:0")
    job.cancel()


def test_a_queue_that_no_worker_takes_is_named(
    fleet: TestFleet, voice: Path, reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = fleet.submit(voice, seed=34)
    item = reader.wait_stalled(job, "encode:0", "sent")
    assert (item["queue"], item["worker"]) == ("encode", "")
    told = "encode:0 waits for a worker of queue encode"
    assert told in reader.told(job)
    monkeypatch.setattr(watch, "LOOK", 0.1)
    with ThreadPoolExecutor() as threads:
        following = threads.submit(follow, job, quiet=False)
        err = ""

        def is_told() -> bool:
            nonlocal err
            err += reader.capsys.readouterr().err
            return told in err

        wait_until(is_told, WAIT, lambda: f"not told of it: {err}")
        fleet.start("two", odd=True, queues="encode")
        following.result(WAIT)
    assert (err + reader.capsys.readouterr().err).count(told) == 1
    assert reader.stalled(job) == []
    assert job.result() == made_here(voice, seed=34)
