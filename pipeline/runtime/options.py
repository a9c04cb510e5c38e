"""What is decided once for all models of a process: threads, the ladder, memory."""

from __future__ import annotations

import os
from dataclasses import dataclass

from .providers import Rung

MOST_THREADS = 1024
"""Of one model; more is a slip of the pen."""


@dataclass(frozen=True)
class RuntimeOptions:
    """How models run on this machine.

    `threads`: cores that a model may use, None = every core allowed. `providers`: the ladder, best first, None = what
    the installed build is for, then the CPU. `strict`: a model that does not run wholly on the first rung is an error.
    `device_memory`: bytes of the device that one session may use, None for no bound. `memory`: bytes of the host's
    memory that this process may use, None for all that it is allowed.
    """

    threads: int | None = None
    providers: tuple[Rung, ...] | None = None
    strict: bool = False
    device_memory: int | None = None
    memory: int | None = None

    @property
    def thread_count(self) -> int:
        return self.threads or cores_allowed()


def cores_allowed() -> int:
    """Cores that this process may use (a cpuset counts), or where the system cannot say, those there are."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
