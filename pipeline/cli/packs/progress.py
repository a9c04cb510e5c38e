"""Progress of a pull: a bar a file on a terminal; elsewhere a line a finished file, and one now and then."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import TYPE_CHECKING

from .arguments import megabytes

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID


class PullProgress:
    """Use as a context manager and hand the instance to `pull` as `on_progress`. On standard error; `quiet`: not at
    all; `every`: seconds between lines."""

    def __init__(self, *, quiet: bool = False, every: float = 10.0) -> None:
        terminal = sys.stderr.isatty()
        self._lines = not quiet and not terminal
        self._bars = _bars() if terminal and not quiet else None
        self._tasks: dict[str, TaskID] = {}
        self._every = every
        self._first: dict[str, tuple[float, int]] = {}
        self._done: dict[str, int] = {}
        self._last = time.monotonic(), 0

    def __enter__(self) -> PullProgress:
        if self._bars is not None:
            self._bars.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bars is not None:
            self._bars.stop()

    def __call__(self, file: str, done: int, total: int) -> None:
        if self._bars is not None:
            if file not in self._tasks:
                self._tasks[file] = self._bars.add_task(file.rpartition("/")[2], total=total, completed=done)
            self._bars.update(self._tasks[file], completed=done)
        elif self._lines:
            self._line(file, done, total)

    def _line(self, file: str, done: int, total: int) -> None:
        now = time.monotonic()
        began, before = self._first.setdefault(file, (now, done))
        self._done[file] = done - before
        if done == total and before < total:
            self._first[file] = began, total  # told once
            print(f"{file}: {megabytes(total)} at {_rate(done - before, now - began)}", file=sys.stderr)
        last, fetched = self._last
        if now - last >= self._every:
            self._last = now, sum(self._done.values())
            rate = _rate(self._last[1] - fetched, now - last)
            print(f"{megabytes(self._last[1])} so far, at {rate}", file=sys.stderr)


def _rate(count: int, seconds: float) -> str:
    return f"{count / max(seconds, 1e-3) / 1e6:.1f} MB/s"


def _bars() -> Progress:
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
        TransferSpeedColumn,
    )

    return Progress(
        TextColumn("{task.description:<42}"),
        BarColumn(bar_width=20),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
    )
