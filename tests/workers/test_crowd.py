"""Many jobs at once, long ones beside short ones, and workers of another version among the others."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.workers.fleet import (
    PORTRAIT,
    ROOT,
    SETTINGS,
    WAIT,
    TestFleet,
    cut_voice,
    made_here,
    running_fleet,
    wait_nothing_left,
    wait_until,
)
from workers.owners import worker_of

CLIENTS, JOBS_EACH = 4, 10

SUBMIT = """
import sys
from workers.client import Client
settings = {settings!r}
for seed in range({first}, {first} + {count}):
    print(Client({url!r}).submit({portrait!r}, {voice!r}, **{{**settings, "seed": seed}}).id, flush=True)
"""


@pytest.fixture(scope="module")
def voice(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Half a second: of little work."""
    return cut_voice(tmp_path_factory.mktemp("voice") / "voice.wav", 0.5)


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestFleet]:
    with running_fleet(tmp_path_factory.mktemp("fleet"), "one", "two", odd=True) as made:
        yield made


def test_forty_jobs_of_four_clients(fleet: TestFleet, voice: Path) -> None:
    fleet.empty()
    clients = []
    for number in range(CLIENTS):
        words = {"url": fleet.server.url, "portrait": str(PORTRAIT), "voice": str(voice), "settings": SETTINGS}
        text = SUBMIT.format(first=number * JOBS_EACH, count=JOBS_EACH, **words)
        clients.append(subprocess.Popen([sys.executable, "-c", text], cwd=ROOT, stdout=subprocess.PIPE, text=True))
    ids = [line for client in clients for line in client.communicate(timeout=WAIT)[0].split()]
    assert len(set(ids)) == CLIENTS * JOBS_EACH
    client = fleet.client()
    assert {job.id for job in client.jobs()} == set(ids)
    films = []
    for job in map(client.job, ids):
        job.wait(timeout=3 * WAIT)
        films.append(job.result())
        ends = [event for event in job.events(timeout=WAIT) if event.state]
        assert len(ends) == 1
    assert films[7] == made_here(voice, seed=7)
    steps = [state for job in ids for state in client.fleet.jobs.view(job).steps.values()]
    assert {state.status for state in steps} == {"done"}
    assert {state.starts for state in steps} == {1}
    wait_nothing_left(fleet)
    for job in map(client.job, ids):
        assert job.status()["bytes"].keys() == {"film"}


def test_a_short_job_passes_a_long_one(fleet: TestFleet, voice: Path, tmp_path: Path) -> None:
    """Submitted behind one of 24 chunks that is being rendered: it waits for a few of them, not for the film. How long
    the long one is makes no difference, as it never has more than three chunks in the queue."""
    fleet.empty()
    long = fleet.submit(cut_voice(tmp_path / "long.wav", 48), fps=25)
    wait_until(lambda: long.fleet.jobs.counts(long.id).get("frames", 0) > 0, WAIT, fleet.standing)
    short = fleet.submit(voice, seed=50)
    urgent = fleet.submit(voice, seed=51, priority="high")
    before = long.fleet.jobs.counts(long.id)["frames"]
    short.wait(timeout=WAIT)
    urgent.wait(timeout=WAIT)
    chunks = (long.fleet.jobs.counts(long.id)["frames"] - before) / 50
    assert long.state == "running"
    assert chunks < 18
    long.cancel()


def test_a_fleet_that_is_half_upgraded(fleet: TestFleet, voice: Path) -> None:
    """What comes to the worker of another version is handed back with its reason, and done by one that matches."""
    fleet.empty()
    fleet.workers[0].stop()
    other = fleet.start("other", odd=True, environment={"TALKREEL_TEST_CODE": "9.9.9+other"})
    jobs = [fleet.submit(voice, seed=seed) for seed in (60, 61)]
    for job in jobs:
        job.wait(timeout=WAIT)
    assert jobs[0].result() == made_here(voice, seed=60)
    fleet.workers[1].stop()  # now nobody matches
    stuck = fleet.submit(voice, seed=62)

    def noted() -> bool:
        steps = stuck.fleet.jobs.view(stuck.id).steps
        return len(steps) == 2 and all(state.sends >= 3 and "9.9.9+other" in state.note for state in steps.values())

    wait_until(noted, WAIT, fleet.standing)
    steps = stuck.fleet.jobs.view(stuck.id).steps.values()
    assert {state.starts for state in steps} <= {0, 1}
    assert {worker_of(state.owner or state.last) for state in steps} == {"other@test"}
    spent = sum(sum(p.cpu_times()[:2]) for p in [psutil.Process(other.process.pid), *other.children])
    assert max(state.sends for state in steps) < 10 + 5 * spent
    fleet.start("matching", odd=True)
    stuck.wait(timeout=WAIT)
    assert stuck.result() == made_here(voice, seed=62)
    assert "handed back: another version" in other.text
    assert ": 'done'" not in other.text  # nothing is made by the wrong version


def test_a_process_that_has_grown_is_replaced(fleet: TestFleet, voice: Path) -> None:
    """Each of its tasks ends above the limit, so each is done by a new process."""
    fleet.empty()
    for worker in fleet.workers:
        if worker.alive:
            worker.stop()
    small = fleet.start("small", odd=True, environment={"TALKREEL_PROCESS_MEMORY": "20"})
    first = {child.pid for child in small.children}
    fleet.submit(voice).wait(timeout=WAIT)
    wait_until(lambda: {child.pid for child in small.children}.isdisjoint(first), WAIT, fleet.standing)
    assert small.alive
