"""A list of jobs, worked through with a bounded number on the fleet at a time, and taken up again where it ended.

The list is CSV with a line of names, or JSON lines: portrait, audio, output, and any of the settings, pack,
priority and deadline. Beside it lies LIST.state.json: for each output the job that makes it and how it ended.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from pipeline.errors import OutputError, SettingsError, TalkreelError
from pipeline.render import check_output
from pipeline.settings import Settings, parse_background
from pipeline.stages.film_format import exact_fps

from .client import Client, Job
from .errors import FleetUnreachableError, JobNotFoundError
from .jobs import ENDED
from .patience import patiently

LOOK = 0.25
"""Seconds between two looks at the jobs in flight."""

FILES = ("portrait", "audio", "output")


def _yes(value: str) -> bool:
    if value.lower() not in ("true", "false", "yes", "no", "1", "0"):
        raise ValueError(value)
    return value.lower() in ("true", "yes", "1")


FROM_TEXT: dict[str, Callable[[str], Any]] = {
    "preset": str,
    "fps": lambda text: str(exact_fps(text)),
    "keyframe_fps": float,
    "seed": int,
    "strength": float,
    "guidance": float,
    "frame": str,
    "max_side": int,
    "face": int,
    "background": lambda text: list(parse_background(text)),
    "synthetic_note": _yes,
    "pack": str,
    "priority": str,
    "deadline": float,
}
"""How a CSV cell becomes a setting; JSON has its own types, but for texts where a number belongs."""


@dataclass(frozen=True)
class Row:
    """One line of the list. Paths are relative to the list's folder."""

    line: int
    portrait: Path
    audio: Path
    output: Path
    settings: dict[str, Any]

    @property
    def digest(self) -> str:
        """Changes with what is asked for, so that a line that was edited is made again."""
        parts = [str(self.portrait), str(self.audio), str(self.output), self.settings]
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]


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


def read_list(path: Path) -> list[Row]:
    """All rows. Raises SettingsError: the list, or one of its lines, cannot be used; names the line."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"list {path} cannot be read: {error}; give CSV or JSON lines in UTF-8") from None
    as_json = path.suffix.lower() in (".jsonl", ".ndjson", ".json") or text.lstrip().startswith("{")
    rows = [_row(path, line, data) for line, data in (_json_lines if as_json else _csv_lines)(path, text)]
    if not rows:
        raise SettingsError(f"list {path} holds no jobs; its columns are {', '.join(FILES)} and any setting")
    lines: dict[Path, int] = {}
    for row in rows:
        if row.output in lines:
            raise SettingsError(f"{path}:{row.line}: output {row.output} is that of line {lines[row.output]} too")
        lines[row.output] = row.line
    return rows


def _csv_lines(path: Path, text: str) -> Iterator[tuple[int, dict[str, Any]]]:
    reader = csv.DictReader(io.StringIO(text, newline=""), skipinitialspace=True)
    for cells in reader:
        if None in cells:
            raise SettingsError(f"{path}:{reader.line_num}: more cells than the first line has names")
        yield reader.line_num, {name.strip(): cell.strip() for name, cell in cells.items() if cell and cell.strip()}


def _json_lines(path: Path, text: str) -> Iterator[tuple[int, dict[str, Any]]]:
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        try:
            data = json.loads(line)
        except ValueError as error:
            raise SettingsError(f"{path}:{number}: not JSON ({error})") from None
        if not isinstance(data, dict):
            raise SettingsError(f"{path}:{number}: not a JSON object; give one a line")
        yield number, {name: value for name, value in data.items() if value is not None}


def _row(path: Path, line: int, data: dict[str, Any]) -> Row:
    where = f"{path}:{line}"
    if missing := [name for name in FILES if not isinstance(data.get(name), str)]:
        raise SettingsError(f"{where}: {', '.join(missing)} missing; every line names {', '.join(FILES)}")
    settings = {name: value for name, value in data.items() if name not in FILES}
    if unknown := sorted(set(settings) - set(FROM_TEXT)):
        raise SettingsError(f"{where}: {', '.join(unknown)} unknown; there are: {', '.join(FROM_TEXT)}")
    for name, value in settings.items():
        if isinstance(value, str):
            try:
                settings[name] = FROM_TEXT[name](value)
            except ValueError:
                raise SettingsError(f"{where}: {name} {value!r} cannot be used") from None
            except SettingsError as error:
                raise SettingsError(f"{where}: {error}") from None
    try:
        own = {name: value for name, value in settings.items() if name not in ("pack", "priority", "deadline")}
        Settings.from_json({**Settings().to_json(), **own})
    except (TalkreelError, TypeError) as error:
        raise SettingsError(f"{where}: {error}") from None
    folder = path.absolute().parent
    portrait, audio, output = (folder / data[name] for name in FILES)
    return Row(line, portrait, audio, output, settings)


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
            SettingsError: the state file cannot be used. FleetUnreachableError: Redis is away for long; run
            again later.
        """
        self._load()
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
            check_output(row.output)
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
        except OSError as error:
            reason = OutputError(f"{row.output} cannot be written ({error.strerror})")
            return self._end(row, "failed", job.id, reason)
        except TalkreelError as error:
            return self._end(row, "failed", job.id, error)
        return self._end(row, "done", job.id)

    def _end(self, row: Row, state: str, job: str, error: TalkreelError | None = None) -> Outcome:
        data = error.to_json() if error else None
        self._keep(row, Progress(row.digest, job, state, data))
        return Outcome(row, state, job, data)

    def _load(self) -> None:
        if not self.state_path.exists():
            return
        try:
            found = json.loads(self.state_path.read_text(encoding="utf-8"))
            self._progress = {output: Progress(**data) for output, data in found.items()}
        except (OSError, ValueError, TypeError, AttributeError) as error:
            raise SettingsError(f"{self.state_path} cannot be read ({error}); remove it to begin anew") from None

    def _keep(self, row: Row, progress: Progress) -> None:
        """Raises OutputError: the state file cannot be written."""
        self._progress[str(row.output)] = progress
        part = self.state_path.with_name(f".{self.state_path.name}.part")
        try:
            text = json.dumps({output: asdict(data) for output, data in self._progress.items()}, indent=1)
            part.write_text(text, encoding="utf-8")
            part.replace(self.state_path)
        except OSError as error:
            raise OutputError(f"{self.state_path} cannot be written ({error.strerror})") from error
