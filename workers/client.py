"""The client: submits jobs, follows them, fetches films."""

from __future__ import annotations

import asyncio
import io
import json
import time
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO
from uuid import uuid4

from pipeline.errors import SettingsError, TalkreelError
from pipeline.packs.store import DEFAULT_PACK, open_pack
from pipeline.settings import Settings
from pipeline.stages.picture import probe_picture
from pipeline.stages.sound import probe_sound

from .app import create_app
from .broker import Broker
from .config import PRIORITIES
from .connections import Connections
from .errors import FleetError, JobCancelledError, JobLostError, JobNotFoundError, error_from_json
from .films import fetch_film
from .fleet import JOB_LIFETIME, Fleet
from .jobs import ENDED, JobView, Order
from .keys import code_identity, input_key
from .patience import patiently

WAIT = 2.0
"""Seconds that one request for events blocks in Redis."""

Source = str | Path | bytes | BinaryIO


class Client:
    """One fleet, from a client's side.

    Args:
        url: the broker's address; None = from the environment (see `connections`).
    """

    def __init__(self, url: str | None = None, *, connections: Connections | None = None) -> None:
        self.connections = connections or Connections.read(url)
        self.fleet = Fleet(self.connections, create_app(self.connections))

    def submit(
        self,
        portrait: Source,
        audio: Source,
        *,
        pack: str = DEFAULT_PACK,
        priority: str = "normal",
        deadline: float | None = None,
        **settings: Any,
    ) -> Job:
        """Check the inputs (by their headers) and hand the job in.

        Args:
            portrait, audio: a path, bytes, or an open binary file.
            pack: name of a pack that the workers have. priority: "high", "normal" or "low".
            deadline: seconds from now in which the film must be done. settings: of `pipeline.Settings`.

        Raises:
            InputError: inputs or settings cannot be used; nothing was queued.
            FleetUnreachableError: a Redis server does not answer.
        """
        chosen = Settings.from_json({**Settings().to_json(), **settings})
        if priority not in PRIORITIES:
            raise SettingsError(f"priority {priority!r} is unknown; give one of: {', '.join(PRIORITIES)}")
        if deadline is not None and not 0 < deadline < 7 * 24 * 3600:
            raise SettingsError(f"deadline {deadline} is out of range; give seconds above 0, a week at most")
        opened = open_pack(pack)
        opened.manifest.preset(chosen.preset)
        picture, picture_name = _read(portrait)
        sound, sound_name = _read(audio)
        probe_picture(_named(picture, picture_name))
        probe_sound(_named(sound, sound_name))
        Broker(self.connections.broker).ping()
        job, now = uuid4().hex[:16], self.fleet.jobs.now()
        order = Order(
            job=job,
            settings=chosen.to_json(),
            portrait=input_key(picture),
            audio=input_key(sound),
            portrait_name=picture_name,
            audio_name=sound_name,
            pack=pack,
            pack_identity=opened.identity,
            code=code_identity(),
            priority=priority,
            submitted=now,
            deadline=now + deadline if deadline else None,
        )
        self.fleet.store.put(order.portrait, picture, job=job, lifetime=JOB_LIFETIME)
        self.fleet.store.put(order.audio, sound, job=job, lifetime=JOB_LIFETIME)
        self.fleet.jobs.create(order)
        self.fleet.advance(job)
        return Job(self.fleet, job)

    def job(self, job: str) -> Job:
        """A job by its id. Raises JobNotFoundError."""
        self.fleet.jobs.order(job)
        return Job(self.fleet, job)

    def jobs(self) -> list[Job]:
        """All jobs that the fleet remembers, oldest first."""
        return [Job(self.fleet, job) for job in self.fleet.jobs.all()]


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
        return self.fleet.status(self.id)

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


def write_whole(path: Path, data: bytes) -> None:
    """Write a file that appears under its name only when it is complete."""
    part = path.with_name(f".{path.name}.{uuid4().hex[:8]}.part")
    try:
        part.write_bytes(data)
        part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def _read(source: Source) -> tuple[bytes, str]:
    """Bytes and name of an input."""
    if isinstance(source, bytes):
        return source, "the input"
    if isinstance(source, (str, Path)):
        path = Path(source)
        try:
            return path.read_bytes(), path.name
        except OSError as error:
            raise SettingsError(f"{path} cannot be read ({error.strerror}); give the path of a file") from error
    return source.read(), Path(str(getattr(source, "name", "the input"))).name


def _named(data: bytes, name: str) -> BinaryIO:
    stream = io.BytesIO(data)
    stream.name = name
    return stream


__all__ = ["Client", "Event", "Job", "JobNotFoundError", "TalkreelError"]
