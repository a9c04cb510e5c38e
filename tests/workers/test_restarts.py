"""Redis goes away: with its data the film is made; without, the client hears of it and the next job is done."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.workers.fleet import STAGES, WAIT, TestFleet, cut_voice, made_here, running_fleet, wait_until
from workers.errors import FleetUnreachableError, JobLostError, JobNotFoundError


@pytest.fixture(scope="module")
def voice(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return cut_voice(tmp_path_factory.mktemp("voice") / "voice.wav", 1)


@pytest.fixture(scope="module")
def local(voice: Path) -> bytes:
    return made_here(voice)


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestFleet]:
    with running_fleet(tmp_path_factory.mktemp("fleet"), "one", "two", odd=True, persistent=True) as made:
        yield made


def test_redis_restarts_in_every_stage(fleet: TestFleet, voice: Path, local: bytes) -> None:
    for stage in STAGES:
        fleet.hold(f"hold-{stage}")
    job = fleet.submit(voice)
    for stage in STAGES:
        fleet.wait_held(f"hold-{stage}")
        fleet.server.restart()
        fleet.let_go(f"hold-{stage}")
    job.wait(timeout=WAIT)
    assert job.result() == local


def test_redis_is_killed_and_away_for_a_while(fleet: TestFleet, voice: Path, local: bytes) -> None:
    fleet.empty()
    fleet.hold("hold-plan")
    job = fleet.submit(voice)
    fleet.wait_held("hold-plan")
    fleet.server.kill()
    fleet.let_go("hold-plan")  # what this step makes waits for Redis
    with pytest.raises(FleetUnreachableError, match=r"127\.0\.0\.1.*is it running\?"):
        fleet.submit(voice)
    with pytest.raises(FleetUnreachableError):
        job.status()
    fleet.server.start()
    job.wait(timeout=WAIT)
    assert job.result() == local


def test_redis_loses_its_data_in_every_stage(fleet: TestFleet, voice: Path, local: bytes) -> None:
    fleet.empty()
    for stage in STAGES:
        fleet.hold(f"hold-{stage}")
        job = fleet.submit(voice)
        fleet.wait_held(f"hold-{stage}")
        with ThreadPoolExecutor() as threads:
            waiting = threads.submit(job.wait, timeout=WAIT)
            wait_until(lambda: fleet.followed, WAIT, "the client does not follow its job")
            fleet.server.restart(keep_data=False)
            fleet.let_go(f"hold-{stage}")
            with pytest.raises(JobLostError, match="record is no longer on the fleet"):
                waiting.result()
        with pytest.raises(JobNotFoundError):
            job.status()
    last = fleet.submit(voice)
    last.wait(timeout=WAIT)
    assert last.result() == local
