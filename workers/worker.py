"""What a worker does besides its tasks: the supervisor in its main process, JSON logs where wanted."""

from __future__ import annotations

import json
import logging
import os
import time
from typing import Any

from celery.signals import setup_logging, worker_process_init, worker_ready, worker_shutting_down

from pipeline.errors import TalkreelError
from pipeline.packs.store import DEFAULT_PACK

from . import leaving
from .app import app
from .config import grace, served_queues
from .connections import Connections
from .fleet import Fleet
from .supervisor import Supervisor

_supervisors: list[Supervisor] = []


class JsonLines(logging.Formatter):
    """One JSON object a line, with job and step where a record has them."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(record.created)),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            "process": record.process,
        }
        for name in ("job", "step"):
            if (value := getattr(record, name, None)) is not None:
                line[name] = value
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        return json.dumps(line)


@setup_logging.connect  # type: ignore[untyped-decorator]
def configure_logging(loglevel: int | str = logging.INFO, **_: Any) -> None:
    """JSON lines with TALKREEL_LOG=json, text otherwise."""
    handler = logging.StreamHandler()
    text = logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s")
    handler.setFormatter(JsonLines() if os.environ.get("TALKREEL_LOG") == "json" else text)
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(loglevel)
    logging.getLogger("celery.redirected").setLevel(logging.WARNING)


@worker_process_init.connect  # type: ignore[untyped-decorator]
def warm_up(**_: Any) -> None:
    """Models are opened in the pool's process, never before the fork. A pack that cannot be opened here fails its
    jobs with the reason, not the worker."""
    from .step_task import studios

    queues = served_queues()
    try:
        studios().open(DEFAULT_PACK).warm_up(motion="motion" in queues, frames="render" in queues)
    except TalkreelError as error:
        logging.getLogger(__name__).warning("pack %s is not ready: %s", DEFAULT_PACK, error)


@worker_ready.connect  # type: ignore[untyped-decorator]
def start_supervisor(sender: Any, **_: Any) -> None:
    """Once the worker takes tasks, it looks after the fleet's jobs, too."""
    fleet, processes = Fleet(Connections.read(), app), int(os.environ.get("TALKREEL_PROCESSES", "1"))
    supervisor = Supervisor(fleet, lambda: fleet.paces.show(sender.hostname, served_queues(), processes))
    supervisor.start()
    _supervisors.append(supervisor)


@worker_shutting_down.connect  # type: ignore[untyped-decorator]
def leave(**_: Any) -> None:
    """Steps may finish for a while; the fleet is no longer looked after from here."""
    leaving.hand_back_in(grace())
    for supervisor in _supervisors:
        supervisor.stop()
