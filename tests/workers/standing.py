"""How a fleet of tests stands, in few lines: what a test that waited in vain says."""

from __future__ import annotations

from typing import TYPE_CHECKING

import psutil

from pipeline.errors import TalkreelError
from workers.client import Job
from workers.owners import worker_of

if TYPE_CHECKING:
    from tests.workers.fleet import TestFleet, Worker

LINES = 15
"""Lines of each worker's log."""


def standing(fleet: TestFleet) -> str:
    """Who is held where, how far the jobs that run are, what waits, and the end of each worker's log."""
    held = {hold: [_holder(fleet, pid) for pid in fleet.held(hold)] for hold in fleet.holds}
    lines = [f"{hold} holds {', '.join(by) or 'nobody'}" for hold, by in held.items()]
    try:
        client = fleet.client()
        lines += [_job(job) for job in client.jobs() if job.state == "running"]
        lines += [f"messages that wait: {client.fleet.message_count()}"]
    except TalkreelError as error:
        lines += [str(error)]
    return "\n".join([*lines, *map(_log, fleet.workers)])


def _holder(fleet: TestFleet, pid: int) -> str:
    names = [worker.name for worker in fleet.workers if worker.alive and pid in _children(worker)]
    return f"process {pid} of {' '.join(['worker', *names]) if names else 'no worker'}"


def _children(worker: Worker) -> list[int]:
    try:
        return [child.pid for child in worker.children]
    except psutil.NoSuchProcess:
        return []


def _job(job: Job) -> str:
    view = job.fleet.jobs.view(job.id)
    steps = [
        f"{step} {state.status} (sent {state.sends}, begun {state.starts}, last sign {view.now - state.at:.1f} s ago)"
        + (f" {worker_of(state.owner or state.last)}" if state.status != "done" else "")
        for step, state in view.steps.items()
    ]
    return f"job {job.id}: {'; '.join(steps)}"


def _log(worker: Worker) -> str:
    ended = "" if worker.alive else f" (ended with {worker.process.returncode})"
    return "\n".join([f"--- {worker.name}{ended}", *worker.text.splitlines()[-LINES:]])
