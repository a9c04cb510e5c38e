"""How a step is run on a worker: taken, leased, done or handed back. The work itself is in `tasks`."""

from __future__ import annotations

import io
import logging
import os
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar
from uuid import uuid4

from celery.exceptions import SoftTimeLimitExceeded

from pipeline.errors import ModelError, TalkreelError
from pipeline.packs.pack import Pack
from pipeline.report import Report
from pipeline.settings import Settings
from pipeline.studio import Studio

from .artifacts import Claim
from .canvas import kind_of, number_of, producer
from .codec import decode, encode
from .errors import (
    ArtifactMissingError,
    DeadlineError,
    FleetError,
    JobCancelledError,
    JobFailedError,
    JobNotFoundError,
    JobReleasedError,
    WorkerMismatchError,
)
from .fleet import JOB_LIFETIME, SHARED, Fleet
from .jobs import Order
from .keys import Keys, code_identity
from .lease import Lease

log = logging.getLogger(__name__)
T = TypeVar("T")

MOST_FAULTS = 3
"""Tries of a step whose model failed; a device's fault may pass, a broken model's does not."""


class NamedBytes(io.BytesIO):
    """An input's bytes under the name that the client's file had, for messages."""

    def __init__(self, data: bytes, name: str) -> None:
        super().__init__(data)
        self.name = name


class WaitingError(Exception):
    """Another worker makes what this step would make; it is looked at again later."""


@dataclass
class Work:
    """What a step has at hand."""

    fleet: Fleet
    order: Order
    step: str
    lease: Lease
    studio: Studio
    report: Report = field(default_factory=Report)

    @cached_property
    def keys(self) -> Keys:
        return Keys(self.order)

    @property
    def settings(self) -> Settings:
        return self.keys.settings

    @property
    def number(self) -> int:
        """The step's number: of its chunk or segment."""
        return number_of(self.step)

    def input(self, key: str, name: str) -> NamedBytes:
        """Raises ArtifactMissingError."""
        return NamedBytes(self.fleet.store.get(key), name)

    def get(self, key: str, kind: type[T]) -> T:
        """A value that an earlier step stored. Raises ArtifactMissingError."""
        return decode(self.fleet.store.get(key), kind)

    def put(self, key: str, value: Any) -> None:
        self.fleet.store.put(key, encode(value), job=self.order.job, lifetime=JOB_LIFETIME)

    def has(self, *keys: str) -> bool:
        """Whether all are there; they are held by this job from then on, so that no other's end deletes them."""
        if not all(self.fleet.store.has(keys)):
            return False
        try:
            for key in keys:
                self.fleet.store.hold(key, job=self.order.job, lifetime=JOB_LIFETIME)
        except ArtifactMissingError:
            return False
        return True

    def share(self, key: str) -> None:
        """Keep an artifact beyond this job."""
        self.fleet.store.hold(key, job=SHARED, lifetime=JOB_LIFETIME)

    def claim(self, key: str) -> bool:
        """Whether this step shall make a shared artifact now; False where it is there already.

        Raises:
            WaitingError: another worker is making it.
        """
        answer = self.fleet.store.claim(key, self.lease.owner, CLAIM_SECONDS)
        if answer is Claim.TAKEN:
            raise WaitingError(key)
        return not (answer is Claim.MADE and self.has(key))

    def progress(self, stage: str, done: int, total: int) -> None:
        """Tell the client, and stop here when the job was cancelled or its time is up."""
        self.lease.check()
        self.fleet.jobs.event(self.order.job, {"stage": stage, "done": done, "total": total})


CLAIM_SECONDS = 60.0
"""A claim on a shared appearance lapses after this, should its worker die; making one takes seconds."""


def owner_name() -> str:
    """Names this process and this run of a step."""
    return f"{socket.gethostname()}/{os.getpid()}/{uuid4().hex[:8]}"


def run_step(
    fleet: Fleet,
    job: str,
    step: str,
    studio_of: Callable[[Order], Studio],
    work: Callable[[Work], dict[str, Any]],
) -> str:
    """Run a step once, unless that is not wanted (any more). Never raises for what a job may meet.

    Returns:
        What became of it, for logs and Flower.
    """
    owner = owner_name()
    verdict = fleet.jobs.begin(job, step, owner)
    if verdict == "done":
        fleet.advance(job)  # the worker that did it may have died before it could
    elif verdict == "late":
        fleet.late(job)
    elif verdict == "poisoned":
        reason = "it ended its worker again and again (out of memory, or a crash); see the workers' logs"
        fleet.end(job, "failed", JobFailedError(job, step, reason))
    if verdict != "go":
        return verdict
    order = fleet.jobs.order(job)
    begun = time.monotonic()
    try:
        studio = studio_of(order)
        with Lease(fleet.jobs, job, step, owner, on_loss=studio.terminate) as lease:
            try:
                result = work(Work(fleet, order, step, lease, studio))
            except ModelError:
                lease.check()  # a run that was ended on purpose is no fault of the model
                raise
        if fleet.jobs.finish(job, step, owner, {**result, "took": round(time.monotonic() - begun, 3)}):
            fleet.advance(job)
        return "done"
    except Exception as error:
        return _failed(fleet, job, step, error)


def _failed(fleet: Fleet, job: str, step: str, error: Exception) -> str:
    """Decide what an error means for the job."""
    if isinstance(error, DeadlineError):
        fleet.late(job)
        return "late"
    if isinstance(error, (JobCancelledError, JobReleasedError, JobNotFoundError)):
        return "ended"
    if isinstance(error, WorkerMismatchError):
        fleet.jobs.hand_back(job, step, str(error), uncounted=True)
        return "handed back: another version"
    if isinstance(error, WaitingError):
        fleet.jobs.hand_back(job, step, "another worker is making it", uncounted=True)
        return "waiting"
    if isinstance(error, ArtifactMissingError):
        kind = kind_of(error.key)
        log.warning("job %s: %s is gone; it is made again", job, error.key)
        fleet.remake(job, step, producer(error.key), "portrait or recording" if kind == "input" else kind)
        return f"{kind} is made again"
    if isinstance(error, SoftTimeLimitExceeded):
        fleet.end(job, "failed", JobFailedError(job, step, "it took longer than a task may"))
        return "failed: too long"
    passing = isinstance(error, FleetError) and error.passing
    if passing or (isinstance(error, ModelError) and _starts(fleet, job, step) < MOST_FAULTS):
        log.warning("job %s: %s is tried again: %s", job, step, error)
        fleet.jobs.hand_back(job, step, str(error), uncounted=passing)
        return "tried again"
    if isinstance(error, TalkreelError):
        fleet.end(job, "failed", error)
    else:
        log.exception("job %s: %s failed", job, step)
        fleet.end(job, "failed", JobFailedError(job, step, f"{type(error).__name__}: {error}"))
    return f"failed: {type(error).__name__}"


def _starts(fleet: Fleet, job: str, step: str) -> int:
    state = fleet.jobs.view(job).steps.get(step)
    return state.starts if state else MOST_FAULTS


class Studios:
    """Studios of a worker process by pack, opened when first wanted, after the fork."""

    def __init__(self, open_studio: Callable[[str], Studio]) -> None:
        self._open = open_studio
        self._studios: dict[str, Studio] = {}

    def of(self, order: Order) -> Studio:
        """The studio that a job needs.

        Raises:
            WorkerMismatchError: this worker's code or pack is not what the job was submitted for.
        """
        if order.code != code_identity():
            raise WorkerMismatchError(order.job, f"code {order.code}", code_identity())
        if order.pack not in self._studios:
            self._studios[order.pack] = self._open(order.pack)
        studio = self._studios[order.pack]
        found: Pack = studio.pack
        if found.identity != order.pack_identity:
            raise WorkerMismatchError(order.job, f"pack {order.pack_identity}", found.identity)
        return studio
