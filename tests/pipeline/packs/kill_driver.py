"""Pulls that kill themselves: at each step that touches the disk, and after so many bytes. Run as a process of its own.

    python -m tests.pipeline.packs.kill_driver MANIFEST steps|bytes

With the manifest's folder as its origin, or an address. A child forked from here is one process that pulls, so that
dozens of them cost no imports. Prints JSON: for "steps", how many there were, and the greatest number of bytes that a
second pull fetched; for "bytes", for each kill the bytes that had come, and those that the second pull fetched.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import sys
from collections.abc import Callable
from pathlib import Path

from pipeline.packs.addresses import find_entry
from pipeline.packs.places import packs_root
from pipeline.packs.pull import PullOptions, damaged_files, pull
from pipeline.packs.registry import Registry
from tests.pipeline.packs.tiny_pack import TOTAL

EVENTS = {"open", "os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.truncate", "shutil.rmtree"}
ENTRY = find_entry(sys.argv[1], Registry({}))


def child(work: Callable[[], int]) -> tuple[int, int]:
    """Do it in a forked process: what it returned, and the signal that ended it (0 for none)."""
    reading, writing = os.pipe()
    process = os.fork()
    if process == 0:
        os.write(writing, str(work()).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as file:
        said = file.read()
    status = os.waitpid(process, 0)[1]
    return int(said or -1), status & 127


def pull_killed_at_step(step: int) -> int:
    """Die before the step of that number that opens, renames or removes something."""
    seen = 0
    root = str(packs_root())

    def count(event: str, arguments: tuple[object, ...]) -> None:
        nonlocal seen
        if event in EVENTS and str(arguments[0]).startswith(root):
            seen += 1
            if seen > step:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(count)
    pull(ENTRY, PullOptions(connections=1))
    return seen


def pull_killed_after(limit: int, here: Path) -> int:
    """Die when so many bytes are here; their number is left in a file."""
    done: dict[str, int] = {}

    def count(name: str, bytes_done: int, total: int) -> None:
        done[name] = bytes_done
        if sum(done.values()) >= limit:
            here.write_text(str(sum(done.values())))
            os.kill(os.getpid(), signal.SIGKILL)

    pull(ENTRY, PullOptions(connections=1, on_progress=count))
    return 0


def whole() -> bool:
    return not damaged_files(ENTRY) and [path.name for path in ENTRY.folder.parent.iterdir()] == [ENTRY.revision]


def steps() -> dict[str, int]:
    step, most = 0, 0
    while True:
        said, killed = child(lambda step=step: pull_killed_at_step(step))  # type: ignore[misc]
        if not killed:
            assert said == step, (said, step)
            return {"steps": step, "most": most}
        assert not ENTRY.folder.exists() or not damaged_files(ENTRY), f"half a pack is seen after step {step}"
        fetched, killed = child(lambda: pull(ENTRY).fetched)
        assert not killed, f"not resumed after step {step}"
        assert whole(), f"not whole after step {step}"
        most = max(most, fetched)
        shutil.rmtree(packs_root())
        step += 1


def byte_by_byte() -> list[list[int]]:
    numbers, kills = random.Random(3), []
    here = packs_root().with_name("here")
    for _ in range(8):
        limit = numbers.randrange(1, TOTAL)
        _, killed = child(lambda limit=limit: pull_killed_after(limit, here))  # type: ignore[misc]
        assert killed == signal.SIGKILL
        fetched, _ = child(lambda: pull(ENTRY).fetched)
        assert whole()
        kills.append([int(here.read_text()), fetched])
        shutil.rmtree(packs_root())
    return kills


if __name__ == "__main__":
    print(json.dumps(steps() if sys.argv[2] == "steps" else byte_by_byte()))
