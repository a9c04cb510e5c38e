"""`talkreel batch`: a list of jobs, resumable."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from pipeline.errors import SettingsError

from ..batch import Batch, Outcome
from ..batch_list import read_list
from .common import add_fleet, connected


class BatchCommand:
    """Work through a list of jobs. Run again, it takes up where it ended: films that are done are kept, jobs on
    the fleet are followed, failed ones tried again."""

    help = "make the films of a list (CSV or JSON lines); run again to take up where it ended"

    def configure(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            "list", metavar="LIST", type=Path,
            help="CSV with a line of names, or JSON lines: portrait, audio, output (relative to the list's folder) "
            "and any of the settings, pack, priority, deadline",
        )  # fmt: skip
        parser.add_argument("--in-flight", type=int, default=16, help="jobs on the fleet at a time (default 16)")
        parser.add_argument("--state", type=Path, metavar="FILE", help="progress (default: LIST.state.json)")
        add_fleet(parser)

    def run(self, args: argparse.Namespace) -> int:
        if not 1 <= args.in_flight <= 10_000:
            raise SettingsError(f"in-flight {args.in_flight} is out of range; give a number from 1 to 10000")
        rows = read_list(args.list)
        state = args.state or args.list.with_name(f"{args.list.name}.state.json")
        counts = {"done": 0, "kept": 0, "failed": 0}
        for outcome in Batch(connected(args), rows, state, args.in_flight).run():
            counts[outcome.state] += 1
            print(json.dumps(outcome.to_json()) if args.json else _line(outcome), flush=True)
        if not args.json:
            print(", ".join(f"{count} {state}" for state, count in counts.items()), file=sys.stderr)
        return 1 if counts["failed"] else 0


def _line(outcome: Outcome) -> str:
    error = f": {outcome.error['message']}" if outcome.error else ""
    return f"{outcome.row.output} {outcome.state}{error}"
