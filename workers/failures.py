"""What an error means for the job whose step ran into it: tried again, handed back, made again, or the job's end."""

from __future__ import annotations

import logging
import time

from celery.exceptions import SoftTimeLimitExceeded

from pipeline.errors import ModelError, OutOfTimeError, TalkreelError, TooLittleMemoryError

from .errors import (
    ArtifactMissingError,
    DeadlineError,
    FleetError,
    JobCancelledError,
    JobFailedError,
    JobNotFoundError,
    JobReleasedError,
    WorkerMismatchError,
    WorkerStoppedError,
)
from .fleet import Fleet
from .job_view import StepState
from .work import ArtifactsMissingError, NotReadyError, WaitingError

log = logging.getLogger(__name__)

MOST_FAULTS = 3
"""Tries of a step whose model failed; a device's fault may pass, a broken model's does not."""

MOST_LACKS = 20
"""Tries of a step that something it needs is lacking for, memory or Redis (unreachable, or full), when the last one
failed for Redis."""

WAITING_PAUSE = 1.0
"""Seconds until a step looks again for what another worker is making."""

MISMATCH_PAUSE = 1.0
"""Seconds that a worker of another version, or with too little memory, waits after it handed a step back, which then
waits twice as long."""

MOST_REFUSALS = 10
"""The same, when the last one failed since its models do not fit in the memory of the worker that took it; another
worker may have more."""

LONGEST_PAUSE = 60.0
"""Seconds until a step that failed for a passing reason is tried again, at most."""


def settle_failure(fleet: Fleet, job: str, step: str, owner: str, error: Exception) -> str:
    """Do what an error calls for; in words, for logs and Flower."""
    if isinstance(error, DeadlineError):
        fleet.late(job)
        return "late"
    if isinstance(error, OutOfTimeError):
        fleet.late(job, str(error))
        return "cannot be done in time"
    if isinstance(error, (JobCancelledError, JobReleasedError, JobNotFoundError)):
        return "ended"
    if isinstance(error, WorkerMismatchError):
        fleet.jobs.hand_back(job, step, owner, str(error), pause=2 * MISMATCH_PAUSE, uncounted=True)
        # This worker is free for the next message at once: it must not take them all from those that match.
        time.sleep(MISMATCH_PAUSE)
        return "handed back: another version"
    if isinstance(error, WaitingError):
        fleet.jobs.hand_back(job, step, owner, "another worker is making it", pause=WAITING_PAUSE, uncounted=True)
        return "waiting"
    if isinstance(error, WorkerStoppedError):
        fleet.jobs.hand_back(job, step, owner, str(error), pause=0.0, uncounted=True)
        return "handed back: told to stop"
    if isinstance(error, NotReadyError):
        fleet.jobs.remake(job, step, owner, [])
        fleet.advance(job)
        return "sent too early"
    if isinstance(error, (ArtifactMissingError, ArtifactsMissingError)):
        keys = error.keys if isinstance(error, ArtifactsMissingError) else (error.key,)
        log.warning("job %s: %s of %s: gone; made again", job, step, ", ".join(keys))
        fleet.remake(job, step, owner, keys)
        return "what it needs is made again"
    if isinstance(error, SoftTimeLimitExceeded):
        fleet.end(job, "failed", JobFailedError(job, step, "it took longer than a task may"))
        return "failed: too long"
    try:
        state = fleet.jobs.view(job).steps.get(step) or StepState("")
    except JobNotFoundError:
        return "ended"
    if isinstance(error, TooLittleMemoryError) and state.lacks + 1 < MOST_REFUSALS:
        log.warning("job %s: %s is handed back: %s", job, step, error)
        fleet.jobs.hand_back(job, step, owner, str(error), pause=2 * MISMATCH_PAUSE, uncounted=True, lacking=True)
        time.sleep(MISMATCH_PAUSE)
        return "handed back: too little memory"
    passing = isinstance(error, FleetError) and error.passing and state.lacks + 1 < MOST_LACKS
    if passing or (isinstance(error, ModelError) and state.starts < MOST_FAULTS):
        log.warning("job %s: %s is tried again: %s", job, step, error)
        pause = min(2.0 ** (state.lacks + 1 if passing else state.starts), LONGEST_PAUSE)
        fleet.jobs.hand_back(job, step, owner, str(error), pause=pause, uncounted=passing, lacking=passing)
        return "tried again"
    if isinstance(error, TalkreelError):
        fleet.end(job, "failed", error)
    else:
        log.exception("job %s: %s failed", job, step, exc_info=error)
        fleet.end(job, "failed", JobFailedError(job, step, f"{type(error).__name__}: {error}"))
    return f"failed: {type(error).__name__}"
