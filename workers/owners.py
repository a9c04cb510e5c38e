"""Names of those who run a step: machine, process, run. On its own machine a process is known to be dead at
once, before its lease has passed."""

from __future__ import annotations

import os
import socket
from functools import cache
from uuid import uuid4


def owner_name() -> str:
    """Names this process and one run of a step."""
    return f"{_place()}/{os.getpid()}/{uuid4().hex[:8]}"


def is_dead(owner: str) -> bool:
    """Whether the owner was a process of this machine that is no more. False where that cannot be known."""
    place, _, rest = owner.rpartition("/")[0].rpartition("/")
    if place != _place() or not rest.isdigit():
        return False
    try:
        os.kill(int(rest), 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return _is_zombie(int(rest))


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
