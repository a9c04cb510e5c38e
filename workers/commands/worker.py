"""`talkreel worker`: a Celery worker with the fleet's defaults."""

from __future__ import annotations

import argparse
import logging
import os

from pipeline.cli.render import add_providers
from pipeline.errors import SettingsError
from pipeline.machine import memory_allowed
from pipeline.packs.store import DEFAULT_PACK, open_pack
from pipeline.runtime.options import cores_allowed

from ..artifacts import RedisStore
from ..canvas import QUEUES as QUEUE_OF
from ..capacity import MOST_PROCESSES, Capacity
from ..config import QUEUES, grace
from ..connections import Connections
from ..devices import check_ladder
from ..films import Films

LOG_LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")


class WorkerCommand:
    """Run a worker until it is told to stop."""

    help = "run a worker of the fleet"

    def configure(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            "--queues", default=",".join(QUEUES), help=f"what to work on, of: {', '.join(QUEUES)} (default: all)"
        )
        parser.add_argument(
            "--processes",
            type=int,
            help="tasks at a time (default: one a device, or as many as cores and memory have room for)",
        )
        add_providers(parser)
        parser.add_argument("--name", default="talkreel@%h", help="of the worker; must differ on one machine")
        parser.add_argument("--log-level", default="INFO", choices=LOG_LEVELS, type=str.upper, help="default INFO")

    def run(self, args: argparse.Namespace) -> int:
        queues = [queue.strip() for queue in args.queues.split(",")]
        if unknown := set(queues) - set(QUEUES):
            raise SettingsError(f"queues {', '.join(sorted(unknown))} are unknown; give some of: {', '.join(QUEUES)}")
        if args.processes is not None and not 1 <= args.processes <= MOST_PROCESSES:
            raise SettingsError(
                f"processes {args.processes} is out of range; give a number from 1 to {MOST_PROCESSES}, or leave it out"
            )
        grace()  # told now, not when the worker is at work
        connections = Connections.read()
        if QUEUE_OF["mux"] in queues:
            Films.read(RedisStore(connections.artifacts)).check()
        for server in (connections.broker, connections.artifacts):
            server.check_login()
        strict = args.strict_providers or bool(os.environ.get("TALKREEL_STRICT_PROVIDERS"))
        found = check_ladder(args.providers or os.environ.get("TALKREEL_PROVIDERS") or None, strict)
        capacity = Capacity(open_pack(DEFAULT_PACK).manifest, queues, cores_allowed(), memory_allowed())
        choice = capacity.choose(args.processes or len(found.devices) or None)
        os.environ["TALKREEL_PROCESSES"] = str(choice.processes)
        os.environ["TALKREEL_PROVIDERS"] = ",".join(map(str, found.rungs))
        if strict:
            os.environ["TALKREEL_STRICT_PROVIDERS"] = "1"
        os.environ["TALKREEL_QUEUES"] = ",".join(queues)
        from ..app import app  # reads the environment
        from ..worker import configure_logging

        configure_logging(args.log_level)
        log = logging.getLogger(__name__)
        log.log(logging.INFO if choice.fits else logging.WARNING, choice.reason)
        log.info("providers: %s", ", ".join(map(str, found.rungs)))
        for problem in found.problems:
            log.warning(problem)
        app.worker_main([
            "worker",
            f"--queues={','.join(queues)}",
            f"--concurrency={choice.processes}",
            f"--hostname={args.name}",
            f"--loglevel={args.log_level}",
            "--events",
            "--without-mingle",
        ])  # fmt: skip
        return 0
