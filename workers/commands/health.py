"""`talkreel health`: whether a worker on this machine is alive."""

from __future__ import annotations

import argparse

from ..health import DEFAULT_NAME, complaint


class HealthCommand:
    """Exit code 0 when the worker's consumer is alive, also while it is busy; 1 when it has stalled."""

    help = "whether a worker on this machine is alive"

    def configure(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--worker", default=DEFAULT_NAME, metavar="NAME", help="as given to it by --name")

    def run(self, args: argparse.Namespace) -> int:
        wrong = complaint(args.worker)
        print(wrong or "healthy")
        return 1 if wrong else 0
