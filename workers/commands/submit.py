"""`talkreel submit`: hand a job in."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from pipeline.cli.render import add_deadline, add_settings, read_settings
from pipeline.errors import SettingsError, TalkreelError
from pipeline.packs.store import DEFAULT_PACK
from pipeline.render import check_film

from ..config import PRIORITIES
from ..errors import FleetUnreachableError
from ..patience import patiently
from .common import add_fleet, connected, show
from .watch import follow


class SubmitCommand:
    """Hand a job in; with --wait, follow it and fetch the film."""

    help = "hand a job in to the fleet"

    def configure(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("portrait", metavar="PORTRAIT", type=Path, help="picture with a face")
        parser.add_argument("audio", metavar="AUDIO", type=Path, help="voice recording, or a video with one")
        add_settings(parser)
        parser.add_argument("--pack", default=DEFAULT_PACK, help="name of a pack that the workers have")
        parser.add_argument("--priority", choices=tuple(PRIORITIES), default="normal", help="default normal")
        add_deadline(parser)
        parser.add_argument("--wait", action="store_true", help="follow the job until it ends")
        parser.add_argument("-o", "--output", type=Path, metavar="OUT.webm", help="with --wait: the film")
        parser.add_argument("--quiet", action="store_true", help="with --wait: no progress")
        add_fleet(parser)

    def run(self, args: argparse.Namespace) -> int:
        if args.output:
            if not args.wait:
                raise SettingsError("--output is written only with --wait; add that, or take the film later with fetch")
            check_film(args.output, args.portrait, args.audio)
        job = connected(args).submit(
            args.portrait,
            args.audio,
            pack=args.pack,
            priority=args.priority,
            deadline=args.deadline,
            **read_settings(args).to_json(),
        )
        if not args.wait:
            show(args, {"job": job.id}, job.id)
            return 0
        try:
            report = follow(job, quiet=args.quiet)
        except (KeyboardInterrupt, FleetUnreachableError):
            print(f"job {job.id} goes on without us; talkreel cancel {job.id} stops it", file=sys.stderr)
            raise
        if args.output:
            try:
                patiently(lambda: job.result(args.output))
            except TalkreelError:
                print(f"job {job.id} is done; fetch its film: talkreel fetch {job.id} -o FILE.webm", file=sys.stderr)
                raise
        show(args, {"job": job.id, "report": report}, "\n".join([str(args.output or job.id), *report["notes"]]))
        return 0
