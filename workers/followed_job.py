"""A job as a client sees it: followed, fetched, cancelled, forgotten."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from pipeline.whole_file import write_whole

from .errors import FleetError, JobCancelledError, JobLostError, JobNotFoundError, error_from_json
from .films import fetch_film
from .fleet import Fleet
from .job_status import job_status
from .job_view import JobView
from .jobs import ENDED
from .patience import patiently

WAIT = 2.0
"""Seconds that one request for events blocks in Redis."""


@dataclass(frozen=True)
class Event:
    """One step forward: stage, steps done and in all, seconds since the job was submitted. `state` is set
    by the last event of a job; `data` is the event as it was sent."""

    stage: str
    done: int
    total: int
    seconds: float
    state: str | None
    data: dict[str, Any]

    @classmethod
    def read(cls, number: bytes, data: dict[str, Any], submitted: float) -> Event:
        """From a stream's entry, whose number begins with its time."""
        seconds = max(0.0, int(number.split(b"-")[0]) / 1000 - submitted)
        return cls(data.get("stage", ""), data.get("done", 0), data.get("total", 0), seconds, data.get("state"), data)


@dataclass(frozen=True)
class Job:
    """One job on the fleet."""

    fleet: Fleet
    id: str

    @property
    def state(self) -> str:
        """ "running", "done", "failed" or "cancelled". Raises JobNotFoundError."""
        return self.fleet.jobs.state(self.id)

    def status(self) -> dict[str, Any]:
        """State, progress and steps at work, as JSON; `stalled` names what makes no progress."""
        return job_status(self.fleet, self.id)

    def events(self, timeout: float | None = None) -> Iterator[Event]:
        """Every event from the job's begin to its end, waiting for those to come.

        A Redis that restarts is waited for.

        Raises:
            JobNotFoundError: no such job. JobLostError: forgotten meanwhile, or Redis lost its data.
            TimeoutError: not ended in so many seconds. FleetUnreachableError: Redis is away for long.
        """
        submitted = patiently(lambda: self.fleet.jobs.order(self.id)).submitted
        until = None if timeout is None else time.monotonic() + timeout
        seen = b"0"
        while True:
            left = WAIT if until is None else min(WAIT, until - time.monotonic())
            if left <= 0:
                raise TimeoutError(f"job {self.id} has not ended within {timeout:g} s")
            entries = patiently(partial(self._news, seen, left))
            for seen, fields in entries:
                event = Event.read(seen, json.loads(fields[b"data"]), submitted)
                yield event
                if event.state is not None:
                    return
            if not entries:
                try:
                    state = patiently(lambda: self.fleet.jobs.state(self.id))
                except JobNotFoundError:
                    raise JobLostError(self.id, "record") from None
                if state in ENDED:
                    return

    def _news(self, seen: bytes, seconds: float) -> list[tuple[bytes, dict[bytes, bytes]]]:
        """Events after one of this id, waiting for the first of them."""
        with self.fleet.connections.artifacts.errors():
            key = self.fleet.jobs.key(self.id, "events")
            answer = self.fleet.jobs.redis.xread({key: seen}, count=100, block=max(1, int(seconds * 1000)))
        return list(answer[0][1]) if answer else []

    def wait(self, on_progress: Callable[[Event], None] | None = None, timeout: float | None = None) -> dict[str, Any]:
        """Wait for the end; the report.

        Raises:
            TalkreelError: of the class that was raised on the worker. JobCancelledError, DeadlineError.
            JobLostError, TimeoutError, FleetUnreachableError: see `events`.
        """
        for event in self.events(timeout):
            if on_progress is not None:
                on_progress(event)
        return patiently(self._outcome)

    def _outcome(self) -> dict[str, Any]:
        """The report; or raises why there is none."""
        try:
            self._raise(self.fleet.jobs.view(self.id))
        except JobNotFoundError:
            raise JobLostError(self.id, "record") from None
        return self.report()

    def _raise(self, view: JobView) -> None:
        if view.state == "cancelled":
            raise JobCancelledError(self.id)
        if view.error:
            raise error_from_json(view.error)

    def result(self, path: str | Path | None = None) -> bytes:
        """The film's bytes, also written to `path` where one is given.

        Raises:
            OutputError: the file cannot be written.
            TalkreelError: the job failed. FleetError: it has not ended. ArtifactMissingError: expired.
        """
        view = self.fleet.jobs.view(self.id)
        self._raise(view)
        mux = view.result("mux")
        if view.state != "done" or mux is None:
            raise FleetError(f"job {self.id} has not ended; wait for it")
        film = fetch_film(self.fleet.store, mux["film"])
        if path is not None:
            write_whole(Path(path), film)
        return film

    def report(self) -> dict[str, Any]:
        """What happened, as `talkreel render --report` writes it; {} before the end."""
        return self.fleet.jobs.report(self.id)

    def cancel(self) -> None:
        """Stop the job wherever it is, and free what it holds."""
        self.fleet.end(self.id, "cancelled")

    def forget(self) -> None:
        """Erase portrait, voice, and everything made from them, at once."""
        self.fleet.forget(self.id)

    async def events_async(self, timeout: float | None = None) -> AsyncIterator[Event]:
        """`events` for asyncio: the waiting is done in a thread."""
        stream = self.events(timeout)
        while (event := await asyncio.to_thread(next, stream, None)) is not None:
            yield event

    async def wait_async(
        self, on_progress: Callable[[Event], None] | None = None, timeout: float | None = None
    ) -> dict[str, Any]:
        """`wait` for asyncio."""
        async for event in self.events_async(timeout):
            if on_progress is not None:
                on_progress(event)
        return await asyncio.to_thread(patiently, self._outcome)
