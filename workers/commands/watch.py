"""`talkreel watch`: follow a job, with progress like `render`'s."""

from __future__ import annotations

import argparse
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from pipeline.cli.progress import StageProgress
from pipeline.errors import TalkreelError

from ..client import Event, Job
from .common import add_fleet, connected, show, standstill

LOOK = 5.0
"""Seconds between two looks for steps that stand still."""

PARTING = 0.5
"""Seconds that a look may still take when nobody follows the job any more."""


def follow(job: Job, *, quiet: bool) -> dict[str, Any]:
    """Show a job's progress until it ends; the report. Raises what `Job.wait` raises."""
    with StageProgress(quiet=quiet) as progress, _standstills(job, progress.warn):

        def advance(event: Event) -> None:
            if note := event.data.get("note") if event.stage == "budget" else None:
                progress.note(note)
            if event.total:
                progress(event.stage, event.done, event.total)

        return job.wait(advance)


@contextmanager
def _standstills(job: Job, tell: Callable[[str], None]) -> Iterator[None]:
    """Tell once of each step that stands still, for want of a worker above all: nothing else is heard of it."""
    over = threading.Event()

    def look() -> None:
        told: set[tuple[str, str]] = set()
        while not over.wait(LOOK):
            with suppress(TalkreelError):  # who waits for the job says that Redis is away
                for item in job.status()["stalled"]:
                    if (name := (item["step"], item["status"])) not in told and not over.is_set():
                        told.add(name)
                        tell(f"job {job.id}: {standstill(item)}")

    thread = threading.Thread(target=look, name="standstills", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join(PARTING)  # it may wait for a Redis that is silent, and nobody waits for it then


class WatchCommand:
    """Follow a job until it ends."""

    help = "follow a job until it ends"

    def configure(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("job", metavar="JOB")
        parser.add_argument("--quiet", action="store_true", help="no progress")
        add_fleet(parser)

    def run(self, args: argparse.Namespace) -> int:
        report = follow(connected(args).job(args.job), quiet=args.quiet)
        done = f"{args.job} is done, {report['film']['picture_duration']:.2f} s of film"
        show(args, report, "\n".join([done, *report["notes"]]))
        return 0
