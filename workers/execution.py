"""How a step is run on a worker: taken, leased, done. Its work is in `tasks`, what its errors mean in `failures`."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from pipeline.errors import ModelError
from pipeline.runtime.lost import LOST_DEVICES
from pipeline.studio import Studio

from .canvas import NUMBERED, finished_by, kind_of
from .errors import FleetError, JobFailedError
from .failures import settle_failure
from .fleet import Fleet
from .lease import Lease
from .order import Order
from .owners import owner_name
from .patience import patiently
from .work import Work


def run_step(
    fleet: Fleet,
    job: str,
    step: str,
    studio_of: Callable[[Order], Studio],
    work: Callable[[Work], dict[str, Any]],
    worker: str = "",
) -> str:
    """Run a step once, unless that is not wanted (any more).

    Args:
        worker: name of the worker that this process belongs to.

    Returns:
        What became of it, for logs and Flower.

    Raises:
        FleetUnreachableError: Redis is away for long; the supervisor sends the step again.
    """
    owner = owner_name(worker)
    verdict = patiently(lambda: fleet.jobs.begin(job, step, owner))
    if verdict == "done":
        fleet.advance(job)  # the worker that did it may have died before it could
    elif verdict == "late":
        fleet.late(job)
    elif verdict == "poisoned":
        reason = "it ended its worker again and again (out of memory, or a crash); see the workers' logs"
        fleet.end(job, "failed", JobFailedError(job, step, reason))
    if verdict != "go":
        return f"not run: {verdict}"
    try:
        return _run(fleet, job, step, owner, studio_of, work)
    except Exception as error:
        failure = error
        return patiently(lambda: settle_failure(fleet, job, step, owner, failure))
    except BaseException:  # this process is told to go
        with suppress(FleetError):
            fleet.jobs.hand_back(job, step, owner, "its worker was stopped", pause=0.0, uncounted=True)
        raise


def _run(
    fleet: Fleet,
    job: str,
    step: str,
    owner: str,
    studio_of: Callable[[Order], Studio],
    work: Callable[[Work], dict[str, Any]],
) -> str:
    """The step's work under its lease."""
    if LOST_DEVICES:
        # Its last step was finished further down the ladder. The process that comes after it has the device again.
        raise SystemExit("a device is lost to this process")
    order = patiently(lambda: fleet.jobs.order(job))
    begun = time.monotonic()
    studio = studio_of(order)
    if kind_of(step) in NUMBERED:  # its place in the queue is free: no worker shall wait for the job's next step
        patiently(lambda: fleet.advance(job))
    with Lease(fleet.jobs, job, step, owner, on_loss=studio.terminate) as lease:
        try:
            result = work(Work(fleet, order, step, lease, studio))
        except ModelError:
            lease.check()  # a run that was ended on purpose is no fault of the model
            raise
    took = {"took": round(time.monotonic() - begun, 3)}
    if not patiently(lambda: fleet.jobs.finish(job, step, owner, {**result, **took})) and finished_by(step):
        patiently(lambda: fleet.drop_late_film(job))
    patiently(lambda: fleet.advance(job))
    return "done"
