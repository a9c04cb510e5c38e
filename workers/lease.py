"""A step's lease: renewed by a thread while the step runs, lost when the job ends or another took over.

The thread also sends the step's progress, so that a worker never waits for a client's news.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType

from . import leaving
from .errors import DeadlineError, FleetError, JobCancelledError, JobReleasedError, WorkerStoppedError
from .jobs import Jobs

log = logging.getLogger(__name__)

BEAT = 0.5
"""Seconds between renewals: what a cancel takes to be noticed."""

INSIST = 0.1
"""Seconds between two orders to a model to stop, since the first may have come between two of its runs."""

LEAVING = "leaving"


class Lease:
    """Context manager around a step's work.

    Args:
        on_loss: called from the thread until the work has stopped (to terminate a model that runs).
    """

    def __init__(self, jobs: Jobs, job: str, step: str, owner: str, on_loss: Callable[[], None]) -> None:
        self._jobs = jobs
        self._job, self._step, self._owner = job, step, owner
        self._on_loss = on_loss
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"lease {step}", daemon=True)
        self._news: dict[tuple[str, str], tuple[int, int]] = {}
        self._renewals: list[Callable[[], object]] = []
        self._renewing = threading.Lock()
        self._moved = False
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

    def tell(self, stage: str, part: str, done: int, total: int) -> None:
        """Progress, sent with the next renewal; only the last of a part counts. See `Jobs.tell`."""
        self._news[stage, part] = (done, total)

    @contextmanager
    def also(self, renew: Callable[[], object]) -> Iterator[None]:
        """Something else to be renewed with the lease; never again once the context is left."""
        with self._renewing:
            self._renewals.append(renew)
        try:
            yield
        finally:
            with self._renewing:
                self._renewals.remove(renew)

    def _run(self) -> None:
        while not self._stop.wait(BEAT):
            if leaving.is_over():
                self.lost = LEAVING
                self._on_loss()
            else:
                self._beat()
            if self.lost is not None:
                while not self._stop.wait(INSIST):
                    self._on_loss()
                return
        self._send_news()

    def _beat(self) -> None:
        moved, self._moved = self._moved, False
        try:
            answer = self._jobs.beat(self._job, self._step, self._owner, moved)
            if answer != "running":
                self.lost = answer
                self._on_loss()
                return
            with self._renewing:
                for renew in self._renewals:
                    renew()
        except Exception as error:  # Redis away: the work goes on, its result is kept if it comes back in time
            log.warning("the lease of %s (job %s) could not be renewed: %s", self._step, self._job, error)
            return
        self._send_news()

    def _send_news(self) -> None:
        for name in list(self._news):
            news = self._news[name]
            try:
                self._jobs.tell(self._job, *name, *news)
            except Exception as error:  # news are worth no work
                log.warning("progress of %s (job %s) could not be told: %s", self._step, self._job, error)
                return
            if self._news.get(name) == news:
                del self._news[name]

    def check(self) -> None:
        """Raise when the work shall stop. That it asks shows that it goes on (see `JobView.standstill`).

        Raises:
            DeadlineError, JobCancelledError, JobReleasedError: what became of the job or the step.
            WorkerStoppedError: this worker was told to stop.
        """
        self._moved = True
        if self.lost is not None:
            raise self.reason()

    def reason(self) -> FleetError:
        """Why the work shall stop."""
        if self.lost == LEAVING:
            return WorkerStoppedError(self._job)
        if self.lost == "late":
            return DeadlineError(self._job, 0)
        if self.lost == "cancelled":
            return JobCancelledError(self._job)
        return JobReleasedError(self._job)
