"""Names of those who run a step: worker, machine, process, run. On its own machine a process is known to be dead at
once, before its lease has passed."""

from __future__ import annotations

import os
import socket
from functools import cache
from uuid import uuid4


def owner_name(worker: str = "") -> str:
    """Names this process of a worker (by Celery's name for it) and one run of a step."""
    return f"{worker}/{_place()}/{os.getpid()}/{uuid4().hex[:8]}"


def worker_of(owner: str) -> str:
    """Name of the owner's worker; "" where it is not known."""
    return owner.rpartition("/")[0].rpartition("/")[0].rpartition("/")[0]


def is_dead(owner: str) -> bool:
    """Whether the owner was a process of this machine that is no more. False where that cannot be known."""
    place, _, process = owner.rpartition("/")[0].rpartition("/")
    place = place.rpartition("/")[2]
    if place != _place() or not process.isdigit():
        return False
    try:
        os.kill(int(process), 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return _is_zombie(int(process))


@cache
def _place() -> str:
    """Host and PID namespace: containers may share a host's name and not its process numbers."""
    try:
        namespace = os.readlink("/proc/self/ns/pid").strip("pid:[]")
    except OSError:
        namespace = "0"
    return f"{socket.gethostname()}.{namespace}"


def _is_zombie(pid: int) -> bool:
    """Whether only its exit status is left of a process."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as stat:
            return stat.read().rpartition(b")")[2].split()[0] in (b"Z", b"X")
    except OSError:
        return False
