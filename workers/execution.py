"""How a step is run on a worker: taken, leased, done or handed back. The work itself is in `tasks`."""

from __future__ import annotations

import io
import logging
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar

from celery.exceptions import SoftTimeLimitExceeded

from pipeline.errors import ModelError, TalkreelError
from pipeline.packs.pack import Pack
from pipeline.report import Report
from pipeline.settings import Settings
from pipeline.studio import Studio

from .artifacts import Claim
from .canvas import NUMBERED, finished_by, kind_of, number_of
from .codec import decode, encode
from .errors import (
    ArtifactMissingError,
    ArtifactsTooLargeError,
    DeadlineError,
    FleetError,
    JobCancelledError,
    JobFailedError,
    JobNotFoundError,
    JobReleasedError,
    WorkerMismatchError,
    WorkerStoppedError,
)
from .fleet import JOB_LIFETIME, SHARED, Fleet
from .jobs import LEASE, Order
from .keys import Keys, code_identity
from .lease import Lease
from .owners import owner_name
from .patience import patiently

log = logging.getLogger(__name__)
T = TypeVar("T")

MOST_FAULTS = 3
"""Tries of a step whose model failed; a device's fault may pass, a broken model's does not."""

MOST_SENDS = 20
"""Tries of a step that Redis stands in the way of (unreachable, or full)."""

WAITING_PAUSE = 1.0
"""Seconds until a step looks again for what another worker is making."""

MISMATCH_PAUSE = 1.0
"""Seconds that a worker of another version waits before and after it hands a step back."""

LONGEST_PAUSE = 60.0
"""Seconds until a step that failed for a passing reason is tried again, at most."""


class Input(io.BytesIO):
    """An input's bytes under the name that the client's file had, for messages.

    `check` is called as they are read, so that decoding a long recording can be stopped.
    """

    def __init__(self, data: bytes, name: str, check: Callable[[], None]) -> None:
        super().__init__(data)
        self.name = name
        self._check = check

    def read(self, size: int | None = -1, /) -> bytes:
        self._check()
        return super().read(size)


class ArtifactsMissingError(Exception):
    """Several artifacts are gone at once."""

    def __init__(self, keys: Sequence[str]) -> None:
        super().__init__(f"missing: {', '.join(keys)}")
        self.keys = tuple(keys)


class WaitingError(Exception):
    """Another worker makes what this step would make; it is looked at again later."""


class NotReadyError(Exception):
    """What this step needs was taken back since it was sent; it is sent again in its turn."""


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

    def patiently(self, action: Callable[[], T]) -> T:
        """Do it again while Redis is away, within limits; stop when the step shall stop."""
        return patiently(action, self.lease.check)

    def input(self, key: str, name: str) -> Input:
        """Raises ArtifactMissingError."""
        return Input(self.patiently(lambda: self.fleet.store.get(key)), name, self.lease.check)

    def get(self, key: str, kind: type[T]) -> T:
        """A value that an earlier step stored. Raises ArtifactMissingError."""
        return decode(self.patiently(lambda: self.fleet.store.get(key)), kind)

    def need(self, *keys: str) -> None:
        """Raises ArtifactsMissingError: some of these are gone, all that are."""
        found = self.patiently(lambda: self.fleet.store.has(keys))
        if missing := [key for key, there in zip(keys, found, strict=True) if not there]:
            raise ArtifactsMissingError(missing)

    def put(self, key: str, value: Any) -> None:
        data = encode(value)
        self.lease.check()
        self.patiently(lambda: self.fleet.store.put(key, data, job=self.order.job, lifetime=JOB_LIFETIME))

    def has(self, *keys: str) -> bool:
        """Whether all are there; they are held by this job from then on, so that no other's end deletes them."""
        return self.patiently(lambda: self._has(*keys))

    def _has(self, *keys: str) -> bool:
        if not all(self.fleet.store.has(keys)):
            return False
        try:
            for key in keys:
                self.fleet.store.hold(key, job=self.order.job, lifetime=JOB_LIFETIME)
        except ArtifactMissingError:
            return False
        return True

    def share(self, key: str) -> None:
        """Keep an artifact beyond this job, where there is room for that."""
        try:
            self.patiently(lambda: self.fleet.store.hold(key, job=SHARED, lifetime=JOB_LIFETIME))
        except ArtifactsTooLargeError:
            log.warning("no room to keep %s beyond job %s", key, self.order.job)

    def shared(self, key: str, make: Callable[[], Any]) -> None:
        """Have an artifact that jobs share, made by one of them.

        Raises:
            WaitingError: another worker is making it.
        """
        store, owner = self.fleet.store, self.lease.owner

        def claim() -> Claim:
            return store.claim(key, owner, LEASE)

        while (answer := self.patiently(claim)) is Claim.MADE:
            if self.has(key):
                self.share(key)
                return
        if answer is Claim.TAKEN:
            raise WaitingError(key)
        self.lease.also(claim)
        try:
            self.put(key, make())
        except BaseException:
            with suppress(FleetError):  # or it lapses by itself
                store.unclaim(key, owner)
            raise
        self.share(key)

    def progress(self, stage: str, done: int, total: int, part: str = "") -> None:
        """Tell the client (see `Lease.tell`), and stop here when the job was cancelled or its time is up."""
        self.lease.check()
        self.lease.tell(stage, part, done, total)


def run_step(
    fleet: Fleet,
    job: str,
    step: str,
    studio_of: Callable[[Order], Studio],
    work: Callable[[Work], dict[str, Any]],
) -> str:
    """Run a step once, unless that is not wanted (any more).

    Returns:
        What became of it, for logs and Flower.

    Raises:
        FleetUnreachableError: Redis is away for long; the supervisor sends the step again.
    """
    owner = owner_name()
    verdict = patiently(lambda: fleet.jobs.begin(job, step, owner))
    if verdict == "done":
        fleet.advance(job)  # the worker that did it may have died before it could
    elif verdict == "late":
        fleet.late(job)
    elif verdict == "poisoned":
        reason = "it ended its worker again and again (out of memory, or a crash); see the workers' logs"
        fleet.end(job, "failed", JobFailedError(job, step, reason))
    if verdict != "go":
        return verdict
    try:
        return _run(fleet, job, step, owner, studio_of, work)
    except Exception as error:
        failure = error
        return patiently(lambda: _failed(fleet, job, step, owner, failure))
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


def _failed(fleet: Fleet, job: str, step: str, owner: str, error: Exception) -> str:
    """Decide what an error means for the job."""
    if isinstance(error, DeadlineError):
        fleet.late(job)
        return "late"
    if isinstance(error, (JobCancelledError, JobReleasedError, JobNotFoundError)):
        return "ended"
    if isinstance(error, WorkerMismatchError):
        # This worker is free for the next message at once: it must not take them all from those that match.
        time.sleep(MISMATCH_PAUSE)
        fleet.jobs.hand_back(job, step, owner, str(error), pause=MISMATCH_PAUSE, uncounted=True)
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
    state = fleet.jobs.view(job).steps.get(step)
    passing = isinstance(error, FleetError) and error.passing and (state is None or state.sends < MOST_SENDS)
    if passing or (isinstance(error, ModelError) and state is not None and state.starts < MOST_FAULTS):
        log.warning("job %s: %s is tried again: %s", job, step, error)
        pause = min(2.0 ** (state.sends if state else 1), LONGEST_PAUSE)
        fleet.jobs.hand_back(job, step, owner, str(error), pause=pause, uncounted=passing)
        return "tried again"
    if isinstance(error, TalkreelError):
        fleet.end(job, "failed", error)
    else:
        log.exception("job %s: %s failed", job, step, exc_info=error)
        fleet.end(job, "failed", JobFailedError(job, step, f"{type(error).__name__}: {error}"))
    return f"failed: {type(error).__name__}"


class Studios:
    """Studios of a worker process by pack, opened when first wanted, after the fork."""

    def __init__(self, open_studio: Callable[[str], Studio]) -> None:
        self._open = open_studio
        self._studios: dict[str, Studio] = {}

    def open(self, pack: str) -> Studio:
        """The studio of a pack, the same one each time."""
        if pack not in self._studios:
            self._studios[pack] = self._open(pack)
        return self._studios[pack]

    def of(self, order: Order) -> Studio:
        """The studio that a job needs.

        Raises:
            WorkerMismatchError: this worker's code or pack is not what the job was submitted for.
        """
        if order.code != code_identity():
            raise WorkerMismatchError(order.job, f"code {order.code}", code_identity())
        studio = self.open(order.pack)
        found: Pack = studio.pack
        if found.identity != order.pack_identity:
            raise WorkerMismatchError(order.job, f"pack {order.pack_identity}", found.identity)
        return studio
