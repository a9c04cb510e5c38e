"""A step's work as a Celery task, in a process with its own connections and models."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from pipeline.packs.store import open_pack
from pipeline.studio import Studio

from .app import app
from .connections import Connections
from .devices import process_options
from .execution import run_step
from .fleet import Fleet
from .studios import Studios
from .work import Work


@cache
def fleet() -> Fleet:
    """This process's connections; made after the fork."""
    return Fleet(Connections.read(), app)


@cache
def studios() -> Studios:
    """This process's models; made after the fork, on its own device."""
    options = process_options()
    return Studios(lambda pack: Studio(open_pack(pack), options))


def step_task(work: Callable[[Work], dict[str, Any]]) -> Callable[[Work], dict[str, Any]]:
    """Make a function of a step's work a Celery task: talkreel.NAME(job) or talkreel.NAME(job, number)."""
    name = work.__name__

    @app.task(name=f"talkreel.{name}", bind=True)  # type: ignore[untyped-decorator]
    def task(self: Any, job: str, number: int | None = None) -> str:
        step = name if number is None else f"{name}:{number}"
        return run_step(fleet(), job, step, studios().of, work, self.request.hostname or "")

    return work
