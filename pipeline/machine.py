"""What this machine is."""

from __future__ import annotations

import os
import platform
import resource
import sys
from pathlib import Path


def cpu_name() -> str:
    """The processor's model, or what the system says of it."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or "unknown"


def memory_bytes() -> int:
    """Bytes of memory that the machine has."""
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def memory_resident() -> int | None:
    """Bytes of memory that this process takes now; None where the system does not say it cheaply."""
    try:
        pages = Path("/proc/self/statm").read_text().split()[1]
    except OSError:
        return None
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


def memory_peak() -> int:
    """Largest resident size of this process so far, bytes."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def memory_allowed(groups: Path = Path("/sys/fs/cgroup"), membership: Path = Path("/proc/self/cgroup")) -> int:
    """Bytes of memory that this process may use: the machine's, or less where it, or a group around it, has a limit
    (a container's, a service's).

    Args:
        groups: where the control groups are mounted, version 2, or version 1 with a folder a controller.
        membership: the file that says which groups this process is in.
    """
    try:
        lines = membership.read_text().splitlines()
    except OSError:
        lines = []
    limits = [memory_bytes()]
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers == "":
            top, name = groups, "memory.max"
        elif "memory" in controllers.split(","):
            top, name = groups / "memory", "memory.limit_in_bytes"
        else:
            continue
        # Seen from inside of a container the path may lead nowhere; what is mounted at the top is then its own group.
        own = top / path.lstrip("/")
        for folder in (own, *own.parents):
            if folder.is_relative_to(top):
                limits += _limit(folder / name)
    return min(limits)


def _limit(file: Path) -> list[int]:
    """A group's limit; none where it says "max" or is not there."""
    try:
        text = file.read_text().strip()
    except OSError:
        return []
    return [int(text)] if text.isdigit() else []
