"""`talkreel status|fetch|cancel|forget|jobs`: one job, or all of them."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from pipeline.render import check_film

from ..client import Job
from ..errors import JobNotFoundError
from .common import add_fleet, connected, show, standstill


class _OneJob:
    """A command about one job."""

    def configure(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("job", metavar="JOB")
        add_fleet(parser)

    def job(self, args: argparse.Namespace) -> Job:
        return connected(args).job(args.job)


class StatusCommand(_OneJob):
    """State, progress, bytes held, and what is stalled."""

    help = "say how a job stands"

    def run(self, args: argparse.Namespace) -> int:
        status = self.job(args).status()
        show(args, status, "\n".join([_line(status), *(f"  {standstill(item)}" for item in status["stalled"])]))
        return 0


class FetchCommand(_OneJob):
    """Write a job's film to a file."""

    help = "fetch a finished film"

    def configure(self, parser: argparse.ArgumentParser) -> None:
        super().configure(parser)
        parser.add_argument("-o", "--output", type=Path, required=True, metavar="OUT.webm")

    def run(self, args: argparse.Namespace) -> int:
        check_film(args.output)
        film = self.job(args).result(args.output)
        show(args, {"job": args.job, "bytes": len(film), "path": str(args.output)}, f"{args.output}: {len(film)} bytes")
        return 0


class CancelCommand(_OneJob):
    """Stop a job wherever it is."""

    help = "stop a job"

    def run(self, args: argparse.Namespace) -> int:
        job = self.job(args)
        job.cancel()
        show(args, {"job": job.id, "state": job.state}, f"{job.id} {job.state}")
        return 0


class ForgetCommand(_OneJob):
    """Erase portrait, voice, and everything made from them."""

    help = "erase a job and all its data"

    def run(self, args: argparse.Namespace) -> int:
        self.job(args).forget()
        show(args, {"job": args.job, "state": "forgotten"}, f"{args.job} forgotten")
        return 0


class JobsCommand:
    """All jobs that the fleet remembers."""

    help = "list the jobs"

    def configure(self, parser: argparse.ArgumentParser) -> None:
        add_fleet(parser)

    def run(self, args: argparse.Namespace) -> int:
        found = []
        for job in connected(args).jobs():
            try:
                found.append(job.status())
            except JobNotFoundError:  # expired between the two looks
                continue
        show(args, found, "\n".join(map(_line, found)) or "no jobs")
        return 0


def _line(status: dict[str, Any]) -> str:
    frames = status["frames"]
    count = f"{frames['done']}/{frames['total'] or '?'} frames"
    held = sum(status["bytes"].values()) / 1e6
    ending = "  stalled" if status["stalled"] else ""
    if status["error"]:
        ending = f"  {status['error']['message']}"
    return f"{status['job']}  {status['state']:<9}  {count}  {held:.1f} MB  {status['seconds']:.0f} s ago{ending}"
