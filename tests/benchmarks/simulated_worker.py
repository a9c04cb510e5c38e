"""A worker whose steps sleep instead of working: for measuring the fleet's own part (see simulated_fleet).

celery -A tests.benchmarks.simulated_worker worker --pool threads --concurrency 25
"""

from __future__ import annotations

import json
import os
import time
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from workers.app import app
from workers.connections import Connections
from workers.execution import run_step
from workers.fleet import Fleet
from workers.work import Work

app.conf.imports = ("workers.worker",)
app.conf.worker_max_memory_per_child = None

SECONDS = float(os.environ.get("SIMULATED_SECONDS", "2"))
CHUNKS = int(os.environ.get("SIMULATED_CHUNKS", "40"))
LOG = Path(os.environ.get("SIMULATED_LOG", "/tmp/simulated.log"))


@cache
def fleet() -> Fleet:
    return Fleet(Connections.read(), app)


def sleep(work: Work, seconds: float) -> None:
    """Work for so long, and write down when."""
    start = time.time()
    while (left := start + seconds - time.time()) > 0:
        time.sleep(min(left, 0.5))
        work.lease.check()
    with LOG.open("a") as log:
        log.write(json.dumps([start, time.time(), work.step]) + "\n")


def simulated(kind: str) -> Any:
    """A task of this kind."""

    def work(work: Work) -> dict[str, Any]:
        sleep(work, SECONDS if kind in ("render", "encode") else 0.05)
        if kind == "plan":
            segments = [[2 * k, 2 * k + 1] for k in range(CHUNKS // 2)]
            return {"frames": 50 * CHUNKS, "key_frames": 50 * CHUNKS, "chunks": CHUNKS, "segments": segments}
        return {"render": {"clean": True, "repairs": []}, "mux": {"film": "none:none", "bytes": 0}}.get(kind, {})

    @app.task(name=f"talkreel.{kind}")
    def task(job: str, number: int | None = None) -> str:
        step = kind if number is None else f"{kind}:{number}"
        studio: Any = SimpleNamespace(terminate=lambda: None)
        return run_step(fleet(), job, step, lambda order: studio, work)

    return task


TASKS = [
    simulated(kind)
    for kind in ("sound", "portrait", "motion", "appearance", "plan", "render", "settle", "encode", "mux")
]
