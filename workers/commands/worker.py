"""`talkreel worker`: a Celery worker with the fleet's defaults."""

from __future__ import annotations

import argparse
import os

from pipeline.errors import SettingsError

from ..config import QUEUES


class WorkerCommand:
    """Run a worker until it is told to stop."""

    help = "run a worker of the fleet"

    def configure(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            "--queues", default=",".join(QUEUES), help=f"what to work on, of: {', '.join(QUEUES)} (default: all)"
        )
        parser.add_argument("--processes", type=int, default=1, help="tasks at a time (default 1)")
        parser.add_argument("--name", default="talkreel@%h", help="of the worker; must differ on one machine")
        parser.add_argument("--log-level", default="INFO", help="default INFO")

    def run(self, args: argparse.Namespace) -> int:
        queues = [queue.strip() for queue in args.queues.split(",")]
        if unknown := set(queues) - set(QUEUES):
            raise SettingsError(f"queues {', '.join(sorted(unknown))} are unknown; give some of: {', '.join(QUEUES)}")
        if not 1 <= args.processes <= 512:
            raise SettingsError(f"processes {args.processes} is out of range; give a number from 1 to 512")
        os.environ["TALKREEL_PROCESSES"] = str(args.processes)
        os.environ["TALKREEL_QUEUES"] = ",".join(queues)
        from ..app import app  # reads the environment

        app.worker_main([
            "worker",
            f"--queues={','.join(queues)}",
            f"--concurrency={args.processes}",
            f"--hostname={args.name}",
            f"--loglevel={args.log_level}",
            "--events",
            "--without-mingle",
        ])  # fmt: skip
        return 0
