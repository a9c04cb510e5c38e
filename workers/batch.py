"""A list of jobs, worked through with a bounded number on the fleet at a time, and taken up again where it ended.

Beside the list lies LIST.state.json: for each output the job that makes it and how it ended.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from pipeline.errors import SettingsError, TalkreelError
from pipeline.render import check_film
from pipeline.whole_file import write_whole

from .batch_list import Row
from .client import Client, Job
from .errors import FleetUnreachableError, JobNotFoundError
from .jobs import ENDED
from .patience import patiently

LOOK = 0.25
"""Seconds between two looks at the jobs in flight."""


@dataclass
class Progress:
    """How a row stands. `state`: "submitted", "done" or "failed"."""

    digest: str
    job: str = ""
    state: str = ""
    error: dict[str, Any] | None = None


@dataclass(frozen=True)
class Outcome:
    """How a row ended: "done", "failed", or "kept" where it was done before."""

    row: Row
    state: str
    job: str
    error: dict[str, Any] | None = None

    def to_json(self) -> dict[str, Any]:
        return {"output": str(self.row.output), "state": self.state, "job": self.job, "error": self.error}


@dataclass
class Batch:
    """A list on its way through a fleet.

    Args:
        client: the fleet. rows: the list. state_path: where progress is kept.
        in_flight: jobs on the fleet at a time.
    """

    client: Client
    rows: list[Row]
    state_path: Path
    in_flight: int
    _progress: dict[str, Progress] = field(default_factory=dict)

    def run(self) -> Iterator[Outcome]:
        """Outcomes as they come.

        Raises:
            SettingsError: the state file cannot be used. OutputError: it cannot be written.
            FleetUnreachableError: Redis is away for long; run again later.
        """
        self._load()
        self._write()  # were it not to be written, nothing may be submitted: another run would not know of it
        waiting = iter(self.rows)
        flying: dict[str, tuple[Row, Job]] = {}
        more = True
        while more or flying:
            while more and len(flying) < self.in_flight:
                row = next(waiting, None)
                if row is None:
                    more = False
                    break
                begun = self._begin(row)
                if isinstance(begun, Outcome):
                    yield begun
                else:
                    flying[str(row.output)] = (row, begun)
            for name, (row, job) in list(flying.items()):
                outcome = self._look(row, job)
                if outcome is not None:
                    del flying[name]
                    yield outcome
            if flying:
                time.sleep(LOOK)

    def _begin(self, row: Row) -> Job | Outcome:
        """Submit a row's job, or follow the one that was submitted before."""
        before = self._progress.get(str(row.output))
        if before is not None and before.digest == row.digest:
            if before.state == "done" and row.output.is_file():
                return Outcome(row, "kept", before.job)
            if before.job and before.state != "failed":
                try:
                    return patiently(lambda: self.client.job(before.job))
                except JobNotFoundError:
                    pass  # forgotten meanwhile: once more
        try:
            check_film(row.output)
            job = patiently(lambda: self.client.submit(row.portrait, row.audio, **row.settings))
        except FleetUnreachableError:
            raise
        except TalkreelError as error:
            return self._end(row, "failed", "", error)
        self._keep(row, Progress(row.digest, job.id, "submitted"))
        return job

    def _look(self, row: Row, job: Job) -> Outcome | None:
        """Fetch the film of a job that has ended."""
        try:
            if patiently(lambda: job.state) not in ENDED:
                return None
            patiently(lambda: job.result(row.output))
        except FleetUnreachableError:
            raise
        except TalkreelError as error:
            return self._end(row, "failed", job.id, error)
        return self._end(row, "done", job.id)

    def _end(self, row: Row, state: str, job: str, error: TalkreelError | None = None) -> Outcome:
        data = error.to_json() if error else None
        self._keep(row, Progress(row.digest, job, state, data))
        return Outcome(row, state, job, data)

    def _load(self) -> None:
        if not os.path.exists(self.state_path):  # Path's raises where the name is too long
            return
        try:
            found = json.loads(self.state_path.read_text(encoding="utf-8"))
            self._progress = {output: Progress(**data) for output, data in found.items()}
        except (OSError, ValueError, TypeError, AttributeError) as error:
            raise SettingsError(f"{self.state_path} cannot be read ({error}); remove it to begin anew") from None

    def _keep(self, row: Row, progress: Progress) -> None:
        self._progress[str(row.output)] = progress
        self._write()

    def _write(self) -> None:
        """Raises OutputError: the state file cannot be written."""
        text = json.dumps({output: asdict(data) for output, data in self._progress.items()}, indent=1)
        write_whole(self.state_path, text.encode())
