"""Workers that die: the film is made all the same; what kills its worker every time fails its job alone."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.workers.fleet import (
    STAGES,
    WAIT,
    TestFleet,
    cut_voice,
    made_here,
    running_fleet,
    wait_nothing_left,
    wait_until,
)
from workers.errors import JobFailedError
from workers.jobs import LEASE
from workers.owners import worker_of

HOLDS = tuple(f"{'mid' if stage in ('motion', 'render:0') else 'hold'}-{stage}" for stage in STAGES)
"""Where each stage is caught: during its work where it has one that takes time."""


@pytest.fixture(scope="module")
def voice(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return cut_voice(tmp_path_factory.mktemp("voice") / "voice.wav", 1)


@pytest.fixture(scope="module")
def local(voice: Path) -> bytes:
    return made_here(voice)


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestFleet]:
    environment = {"TALKREEL_TEST_POISON": "666"}
    with running_fleet(tmp_path_factory.mktemp("fleet"), "one", "two", odd=True, environment=environment) as made:
        yield made


def test_a_worker_is_killed_in_every_stage(fleet: TestFleet, voice: Path, local: bytes) -> None:
    """The whole worker, as when a machine loses its power; another takes its place."""
    fleet.empty()
    for hold in HOLDS:
        fleet.hold(hold)
    job = fleet.submit(voice)
    for number, hold in enumerate(HOLDS):
        victim = fleet.wait_held(hold)
        fleet.worker_of(victim).kill()
        begun = time.monotonic()
        fleet.start(f"new-{number}", odd=True, ready=False, environment={"TALKREEL_TEST_POISON": "666"})
        fleet.wait_held(hold, after=victim)  # another worker has taken it over
        print(f"{hold} taken over after {time.monotonic() - begun:.1f} s")
        fleet.let_go(hold)
    job.wait(timeout=WAIT)
    assert job.result() == local
    wait_nothing_left(fleet)


def test_a_pool_process_is_killed_in_every_stage(fleet: TestFleet, voice: Path, local: bytes) -> None:
    """As the system does where memory runs out; the worker goes on with a new process."""
    fleet.empty()
    for hold in HOLDS:
        fleet.hold(hold)
    job = fleet.submit(voice)
    for hold in HOLDS:
        victim = fleet.wait_held(hold)
        os.kill(victim, signal.SIGKILL)
        begun = time.monotonic()
        fleet.wait_held(hold, after=victim)
        print(f"{hold} taken over after {time.monotonic() - begun:.1f} s")
        fleet.let_go(hold)
    job.wait(timeout=WAIT)
    assert job.result() == local


def test_a_worker_on_another_machine_is_killed(fleet: TestFleet, voice: Path, local: bytes) -> None:
    """Nobody can see that its processes are gone: its step is taken over when the lease has lapsed, not before."""
    fleet.empty()
    for worker in fleet.workers:
        if worker.alive:
            worker.stop()
    far = fleet.start("far", odd=True, environment={"TALKREEL_TEST_HOST": "another-machine.1"})
    fleet.hold("mid-render:0")
    job = fleet.submit(voice)
    victim = fleet.wait_held("mid-render:0")
    assert job.fleet.jobs.view(job.id).steps["render:0"].owner.startswith("far@test/another-machine.1/")
    near = fleet.start("near", odd=True, environment={"TALKREEL_TEST_POISON": "666"})
    lost = job.fleet.jobs.view(job.id).steps["render:0"]
    far.kill()
    assert fleet.worker_of(fleet.wait_held("mid-render:0", after=victim)) is near
    again = job.fleet.jobs.view(job.id).steps["render:0"]
    assert worker_of(again.last) == "far@test"
    assert again.begun - lost.at >= LEASE
    fleet.let_go("mid-render:0")
    job.wait(timeout=WAIT)
    assert job.result() == local


def test_a_job_that_kills_its_worker_fails_and_the_others_are_done(fleet: TestFleet, voice: Path) -> None:
    fleet.empty()
    first = fleet.submit(voice, seed=21)
    poison = fleet.submit(voice, seed=666)
    last = fleet.submit(voice, seed=22)
    with pytest.raises(JobFailedError, match="ended its worker again and again"):
        poison.wait(timeout=WAIT)
    assert poison.fleet.jobs.view(poison.id).steps["render:0"].starts == 3
    first.wait(timeout=WAIT)
    last.wait(timeout=WAIT)
    wait_until(lambda: not poison.status()["bytes"], WAIT, lambda: str(poison.status()))


def test_artifacts_are_deleted_in_every_stage(fleet: TestFleet, voice: Path, local: bytes) -> None:
    """All but the inputs, again and again: they are made again from what they derive from."""
    fleet.empty()
    fleet.start("beside", odd=True)  # sound and portrait may begin in either order, and both are held
    for stage in STAGES:
        fleet.hold(f"hold-{stage}")
    job = fleet.submit(voice)
    for stage in STAGES:
        fleet.wait_held(f"hold-{stage}")
        with fleet.server.client() as redis:
            keys = [key for key in redis.keys("talkreel:artifact:*") if b":input:" not in key]
            redis.delete(b"", *keys)
        fleet.let_go(f"hold-{stage}")
    job.wait(timeout=WAIT)
    assert job.result() == local
