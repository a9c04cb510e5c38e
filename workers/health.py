"""Whether a worker's consumer is alive: its main process leaves heartbeats in a file, the check reads them.

`talkreel health --worker NAME`, or quicker, without loading the library: `python -m workers.health NAME`.

Celery's own `inspect ping` asks over the broker and is answered by a worker that no longer takes tasks; a file
on the worker's machine speaks for this worker alone, and can be read while the broker is away.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from urllib.parse import quote

DEFAULT_NAME = "talkreel@%h"

BEAT = 2.0
"""Seconds between two heartbeats."""

STALLED = 15.0
"""Seconds without a heartbeat, or without the broker's answer, after which a consumer counts as stalled. A free
consumer asks the broker every second."""


@dataclass(frozen=True)
class Heartbeat:
    """A sign of life. Times are of the machine's monotonic clock, in seconds.

    `loop`: when the main process's event loop last turned. `broker`: when the broker last answered a request
    for work, or when the worker last had no room for more and did not ask.
    """

    pid: int
    loop: float
    broker: float

    def write(self, path: Path) -> None:
        """Raises OSError."""
        part = path.with_suffix(".part")
        part.write_text(json.dumps(asdict(self)))
        part.replace(path)

    @classmethod
    def read(cls, path: Path) -> Heartbeat | None:
        """None: there is none."""
        try:
            return cls(**json.loads(path.read_text()))
        except (OSError, ValueError, TypeError):
            return None


def full_name(name: str) -> str:
    """The name as Celery has it: %h is this host, and a name alone is a host's."""
    name = name.replace("%h", socket.gethostname())
    return name if "@" in name else f"celery@{name}"


def heartbeat_path(name: str) -> Path:
    """Where the worker of this full name leaves its heartbeats; the folder is its user's alone.

    Raises:
        OSError: the folder cannot be made, or is another user's.
    """
    folder = Path(tempfile.gettempdir()) / f"talkreel-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    if folder.is_symlink() or folder.stat().st_uid != os.getuid():
        raise PermissionError(f"{folder} is not ours; remove it, or set TMPDIR")
    return folder / f"{quote(name, safe='@')}.json"


def complaint(name: str, now: float | None = None) -> str | None:
    """What is wrong with the worker of this name on this machine; None: nothing. `now`: of the monotonic clock."""
    now = time.monotonic() if now is None else now
    name = full_name(name)
    try:
        path = heartbeat_path(name)
    except OSError as error:
        return str(error)
    beat = Heartbeat.read(path)
    if beat is None or beat.loop > now:  # the clock begins again with the machine
        return f"worker {name} has left no heartbeat in {path}; is it running here, as this user and by that name?"
    if now - beat.loop > STALLED:
        return f"worker {name} (process {beat.pid}) stalled: no heartbeat for {now - beat.loop:.0f} s"
    if now - beat.broker > STALLED:
        silent = f"the broker has not answered for {now - beat.broker:.0f} s"
        return f"worker {name} (process {beat.pid}) takes no tasks: {silent}"
    return None


if __name__ == "__main__":
    wrong = complaint(sys.argv[1] if len(sys.argv) > 1 else DEFAULT_NAME)
    print(wrong or "healthy")
    sys.exit(1 if wrong else 0)
