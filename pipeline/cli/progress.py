"""Progress on the terminal: stage, counts, elapsed and remaining time."""

from __future__ import annotations

import sys
from types import TracebackType

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)


class StageProgress:
    """A bar a stage on standard error; silent when that is not a terminal, or on request.

    Use as a context manager and hand the instance to `render` as `on_progress`.
    """

    def __init__(self, *, quiet: bool = False) -> None:
        console = Console(stderr=True)
        self._quiet = quiet
        self._bars = Progress(
            TextColumn("{task.description:<12}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            console=console,
            disable=quiet or not sys.stderr.isatty(),
        )
        self._tasks: dict[str, TaskID] = {}

    def __enter__(self) -> StageProgress:
        self._bars.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bars.stop()

    def __call__(self, stage: str, done: int, total: int) -> None:
        if stage not in self._tasks:
            self._tasks[stage] = self._bars.add_task(stage, total=total)
        self._bars.update(self._tasks[stage], completed=done, total=total)

    def note(self, text: str) -> None:
        """A line above the bars; nothing where there are none."""
        if not self._bars.disable:
            self._bars.console.print(text, markup=False, highlight=False)

    def warn(self, text: str) -> None:
        """A line on standard error, above the bars where there are some; nothing on request."""
        if not self._quiet:
            self._bars.console.print(text, markup=False, highlight=False, soft_wrap=True)
