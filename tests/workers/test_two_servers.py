"""Messages on one Redis server and artifacts on another: either is restarted or loses its data, the other goes on."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.workers.fleet import WAIT, TestFleet, cut_voice, made_here, running_fleet, wait_until
from workers.errors import JobLostError

CAUGHT = ("motion", "render:0", "mux")
"""Where a server goes: early, among the frames, at the end. (test_restarts.py has every stage, with one server.)"""


@pytest.fixture(scope="module")
def voice(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return cut_voice(tmp_path_factory.mktemp("voice") / "voice.wav", 1)


@pytest.fixture(scope="module")
def local(voice: Path) -> bytes:
    return made_here(voice)


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestFleet]:
    folder = tmp_path_factory.mktemp("fleet")
    with running_fleet(folder, "one", odd=True, persistent=True, two_servers=True) as made:
        yield made


@pytest.fixture
def fleet(started: TestFleet) -> TestFleet:
    """All of the work is to be done."""
    started.empty()
    for step in CAUGHT:
        started.hold(f"hold-{step}")
    return started


@pytest.mark.parametrize("keep_data", [True, False])
def test_the_broker_alone_is_restarted(keep_data: bool, fleet: TestFleet, voice: Path, local: bytes) -> None:
    """With its messages or without them: what is to be done stands with the artifacts."""
    job = fleet.submit(voice)
    for step in CAUGHT:
        fleet.wait_held(f"hold-{step}")
        fleet.server.restart(keep_data=keep_data)
        fleet.let_go(f"hold-{step}")
    job.wait(timeout=WAIT)
    assert job.result() == local


def test_messages_that_wait_are_lost(fleet: TestFleet, voice: Path, local: bytes) -> None:
    """Those of a job that no worker has begun."""
    first = fleet.submit(voice)
    fleet.wait_held("hold-motion")
    second = fleet.submit(voice, priority="low")
    wait_until(lambda: fleet.client().fleet.message_count() > 0, WAIT, "nothing waits")
    fleet.server.restart(keep_data=False)
    for step in CAUGHT:
        fleet.let_go(f"hold-{step}")
    for job in (first, second):
        job.wait(timeout=WAIT)
        assert job.result() == local


def test_the_artifacts_server_alone_is_restarted(fleet: TestFleet, voice: Path, local: bytes) -> None:
    job = fleet.submit(voice)
    for step in CAUGHT:
        fleet.wait_held(f"hold-{step}")
        fleet.artifacts.restart()
        fleet.let_go(f"hold-{step}")
    job.wait(timeout=WAIT)
    assert job.result() == local


@pytest.mark.parametrize("step", CAUGHT)
def test_the_artifacts_server_loses_everything(step: str, fleet: TestFleet, voice: Path, local: bytes) -> None:
    """The job's record and inputs with it: its client hears of that, and its messages hold nobody up."""
    for other in CAUGHT:
        if other != step:
            fleet.let_go(f"hold-{other}")
    job = fleet.submit(voice)
    fleet.wait_held(f"hold-{step}")
    with ThreadPoolExecutor() as threads:
        waiting = threads.submit(job.wait, timeout=WAIT)
        wait_until(lambda: fleet.followed, WAIT, "the client does not follow its job")
        fleet.artifacts.restart(keep_data=False)
        fleet.let_go(f"hold-{step}")
        with pytest.raises(JobLostError, match="record is no longer on the fleet"):
            waiting.result()
    following = fleet.submit(voice)
    following.wait(timeout=WAIT)
    assert following.result() == local


@pytest.mark.parametrize("inputs", [False, True])
def test_the_artifacts_server_loses_what_it_stores(inputs: bool, fleet: TestFleet, voice: Path, local: bytes) -> None:
    """Jobs are still known: what can be made again is, and a job without its inputs ends with that reason."""
    job = fleet.submit(voice)
    fleet.let_go("hold-motion")
    fleet.let_go("hold-mux")
    fleet.wait_held("hold-render:0")
    with fleet.artifacts.client() as redis:
        redis.delete(*(key for key in redis.keys("talkreel:artifact:*") if inputs or b":input:" not in key))
    fleet.let_go("hold-render:0")
    if inputs:
        with pytest.raises(JobLostError, match="portrait or recording"):
            job.wait(timeout=WAIT)
        job = fleet.submit(voice)
    job.wait(timeout=WAIT)
    assert job.result() == local
