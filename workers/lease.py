"""A step's lease: renewed by a thread while the step runs, lost when the job ends or another took over."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from types import TracebackType

from .errors import DeadlineError, FleetError, JobCancelledError, JobReleasedError
from .jobs import Jobs

log = logging.getLogger(__name__)

BEAT = 0.5
"""Seconds between renewals: what a cancel takes to be noticed."""


class Lease:
    """Context manager around a step's work.

    Args:
        on_loss: called once, from the thread, when the work shall stop (to terminate a model that runs).
    """

    def __init__(self, jobs: Jobs, job: str, step: str, owner: str, on_loss: Callable[[], None]) -> None:
        self._jobs = jobs
        self._job, self._step, self._owner = job, step, owner
        self._on_loss = on_loss
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._renew, name=f"lease {step}", daemon=True)
        self.owner = owner
        self.lost: str | None = None

    def __enter__(self) -> Lease:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join()

    def _renew(self) -> None:
        while not self._stop.wait(BEAT):
            try:
                answer = self._jobs.beat(self._job, self._step, self._owner)
            except Exception as error:  # Redis away: the work goes on, its result is kept if it comes back in time
                log.warning("the lease of %s (job %s) could not be renewed: %s", self._step, self._job, error)
                continue
            if answer != "running":
                self.lost = answer
                self._on_loss()
                return

    def check(self) -> None:
        """Raise when the work shall stop.

        Raises:
            DeadlineError, JobCancelledError, JobReleasedError: what became of the job or the step.
        """
        if self.lost is not None:
            raise self.reason()

    def reason(self) -> FleetError:
        """Why the work shall stop."""
        if self.lost == "late":
            return DeadlineError(self._job, 0)
        if self.lost == "cancelled":
            return JobCancelledError(self._job)
        return JobReleasedError(self._job)
