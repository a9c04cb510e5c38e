"""`talkreel watch`: follow a job, with progress like `render`'s."""

from __future__ import annotations

import argparse
from typing import Any

from pipeline.cli.progress import StageProgress

from ..client import Event, Job
from .common import add_fleet, connected, show


def follow(job: Job, *, quiet: bool) -> dict[str, Any]:
    """Show a job's progress until it ends; the report. Raises what `Job.wait` raises."""
    with StageProgress(quiet=quiet) as progress:

        def advance(event: Event) -> None:
            if note := event.data.get("note") if event.stage == "budget" else None:
                progress.note(note)
            if event.total:
                progress(event.stage, event.done, event.total)

        return job.wait(advance)


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
