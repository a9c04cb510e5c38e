"""Stopping jobs: cancel and deadline in every stage, in the middle of a frame too, and idle or leaving workers."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.workers.fleet import STAGES, WAIT, TestFleet, cut_voice, made_here, running_fleet, wait_until
from workers.errors import DeadlineError, JobCancelledError

THREADS = {"TALKREEL_THREADS": "2"}
"""A model's threads that could spin while their worker is idle."""


@pytest.fixture(scope="module")
def voice(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return cut_voice(tmp_path_factory.mktemp("voice") / "voice.wav", 1)


@pytest.fixture(scope="module")
def long_voice(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return cut_voice(tmp_path_factory.mktemp("voice") / "long.wav", 40)


@pytest.fixture(scope="module")
def local(voice: Path) -> bytes:
    return made_here(voice)


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestFleet]:
    with running_fleet(tmp_path_factory.mktemp("fleet"), "one", odd=True, environment=THREADS) as made:
        yield made


def free_again(fleet: TestFleet) -> bool:
    """Whether the worker has acknowledged whatever it had."""
    with fleet.server.client() as redis:
        return redis.hlen("unacked") == 0


@pytest.mark.parametrize("stage", STAGES)
def test_cancel_in_every_stage(stage: str, fleet: TestFleet, voice: Path) -> None:
    fleet.hold(f"hold-{stage}")
    job = fleet.submit(voice)
    fleet.wait_held(f"hold-{stage}")
    job.cancel()
    begun = time.monotonic()
    with pytest.raises(JobCancelledError):
        job.wait(timeout=WAIT)
    wait_until(lambda: not fleet.held(f"hold-{stage}") and free_again(fleet), WAIT, fleet.standing)
    print(f"cancelled in {stage}: stopped after {time.monotonic() - begun:.2f} s")
    fleet.let_go(f"hold-{stage}")
    assert job.status()["bytes"] == {}
    assert job.status()["state"] == "cancelled"


def test_cancel_in_the_middle_of_a_frame(fleet: TestFleet, long_voice: Path, voice: Path, local: bytes) -> None:
    fleet.empty()
    job = fleet.submit(long_voice, preset="quality", fps=25)
    wait_until(lambda: job.fleet.jobs.counts(job.id).get("frames", 0) > 0, WAIT, fleet.standing)
    job.cancel()
    begun = time.monotonic()
    wait_until(lambda: free_again(fleet), WAIT, fleet.standing)
    print(f"cancelled in a frame: stopped after {time.monotonic() - begun:.2f} s")
    assert job.status()["bytes"] == {}
    assert "is tried again" not in fleet.logs  # a run that was ended is no fault of the model
    well = fleet.submit(voice)
    well.wait(timeout=WAIT)
    assert well.result() == local


def test_a_model_that_runs_is_ended(fleet: TestFleet, voice: Path) -> None:
    """A frame that just comes to its end would let the worker go, too: this run has none."""
    fleet.empty()
    fleet.hold("endless-run")
    job = fleet.submit(voice)
    fleet.wait_held("endless-run")
    job.cancel()
    wait_until(lambda: not fleet.held("endless-run") and free_again(fleet), WAIT, fleet.standing)
    fleet.let_go("endless-run")
    assert "is tried again" not in fleet.logs


def test_a_deadline_ends_the_job_while_it_runs(fleet: TestFleet, long_voice: Path) -> None:
    job = fleet.submit(long_voice, preset="quality", fps=25, deadline=3)
    with pytest.raises(DeadlineError, match="deadline of 3 s"):
        job.wait(timeout=WAIT)
    wait_until(lambda: not job.status()["bytes"] and free_again(fleet), WAIT, lambda: str(job.status()))


def test_a_deadline_ends_the_job_while_it_waits(fleet: TestFleet, voice: Path) -> None:
    fleet.empty()
    fleet.hold("hold-plan")
    first = fleet.submit(voice, priority="high")
    fleet.wait_held("hold-plan")
    second = fleet.submit(voice, seed=6, deadline=0.5)
    with pytest.raises(DeadlineError):
        second.wait(timeout=WAIT)
    fleet.let_go("hold-plan")
    first.wait(timeout=WAIT)


def test_an_idle_worker_uses_no_processor(fleet: TestFleet) -> None:
    wait_until(lambda: free_again(fleet), WAIT, fleet.standing)
    worker = fleet.workers[0]
    processes = [psutil.Process(worker.process.pid), *worker.children]
    before = sum(sum(process.cpu_times()[:2]) for process in processes)
    time.sleep(3)
    used = sum(sum(process.cpu_times()[:2]) for process in processes) - before
    assert used < 0.5


def test_a_worker_that_is_told_to_stop_finishes_its_step(fleet: TestFleet, voice: Path, local: bytes) -> None:
    fleet.empty()
    leaving = fleet.start("leaving", odd=True, queues="media")
    fleet.workers[0].stop()
    fleet.hold("hold-sound")
    job = fleet.submit(voice)
    fleet.wait_held("hold-sound")
    leaving.terminate()
    wait_until(lambda: "Warm shutdown" in leaving.text, WAIT, fleet.standing)
    assert leaving.alive
    fleet.let_go("hold-sound")
    assert leaving.process.wait(WAIT) == 0
    assert job.fleet.jobs.view(job.id).steps["sound"].status == "done"
    fleet.start("next", odd=True)
    job.wait(timeout=WAIT)
    assert job.result() == local


def test_a_worker_that_is_told_to_stop_hands_back_what_takes_longer(
    fleet: TestFleet, voice: Path, local: bytes
) -> None:
    fleet.empty()
    leaving = fleet.start("hasty", odd=True, queues="motion", environment={"TALKREEL_GRACE": "1"})
    for worker in fleet.workers:
        if worker is not leaving and worker.alive:
            worker.stop()
    fleet.start("others", odd=True, queues="media,render,encode")
    fleet.hold("hold-motion")
    job = fleet.submit(voice)
    fleet.wait_held("hold-motion")
    leaving.terminate()
    assert leaving.process.wait(WAIT) == 0
    fleet.let_go("hold-motion")
    state = job.fleet.jobs.view(job.id).steps["motion"]
    assert state.status != "running"
    assert state.starts == 0
    assert "was stopped" in state.note
    fleet.start("last", odd=True, queues="motion")
    job.wait(timeout=WAIT)
    assert job.result() == local
