"""What a worker's models run on: the ladder that it was given, and of several devices, each process its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import takewhile

from billiard import current_process

from pipeline.errors import ProviderError, RuntimeMissingError, SettingsError
from pipeline.machine import memory_allowed
from pipeline.runtime.builds import installed_builds
from pipeline.runtime.devices import device_memory
from pipeline.runtime.options import RuntimeOptions
from pipeline.runtime.providers import CPU, KINDS, Rung, parse_rungs

from .config import threads_per_process

DEVICE_SHARE = 0.9
"""Of a device's memory, what the processes on it share out; the rest is the driver's contexts and libraries."""

CHECK_SECONDS = 120
"""Longest that looking at this machine's providers may take."""


@dataclass(frozen=True)
class Found:
    """A ladder on this machine. `rungs`: best first. `closed`: kinds of which none runs here. `problems`: what is
    known to go wrong, one line each."""

    rungs: tuple[Rung, ...]
    closed: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()

    @property
    def devices(self) -> tuple[Rung, ...]:
        """Those to share out, as far as they run."""
        shared = devices(self.rungs)
        return () if any(rung.kind in self.closed for rung in shared) else shared


def check_ladder(stated: str | None, strict: bool) -> Found:
    """Look at the ladder in a process of its own: a worker that is going to fork must not load what it looks at.

    Args:
        stated: as `--providers` takes it, None for what the installed build is for.

    Raises:
        SettingsError, RuntimeMissingError: see `read_rungs`. ProviderError: with `strict`, a problem.
    """
    plain = [build.name for build in installed_builds()] == [KINDS["cpu"].build]
    if stated == str(CPU) or (stated is None and plain):
        return Found((CPU,))  # nothing to be looked at
    command = [sys.executable, "-m", "pipeline.runtime.check", *([stated] if stated is not None else [])]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=CHECK_SECONDS)
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        raise RuntimeMissingError(f"this machine's providers cannot be looked at ({last}); run talkreel doctor")
    data = json.loads(done.stdout)
    if error := data.get("error"):
        raise {"SettingsError": SettingsError}.get(error, RuntimeMissingError)(data["message"])
    found = Found(parse_rungs(",".join(data["rungs"])), tuple(data["closed"]), tuple(data["problems"]))
    if strict and found.problems:
        raise ProviderError(f"{found.problems[0]}; mend it, or leave out --strict-providers")
    return found


def devices(rungs: Sequence[Rung]) -> tuple[Rung, ...]:
    """The devices that processes are shared out to: the rungs at the top that differ in nothing but the device. The
    CPU is none."""
    same = tuple(takewhile(lambda rung: rung.kind == rungs[0].kind, rungs))
    return () if same[0] == CPU else same


def ladder_of(rungs: Sequence[Rung], process: int) -> tuple[Rung, ...]:
    """The rungs of one process: a device of its own, then those below all devices. Another process's device is none
    of its rungs, since its memory is given away.

    Args:
        process: number in the pool, from 0; it keeps it when it is replaced by a new one.
    """
    shared = devices(rungs)
    return (shared[process % len(shared)], *rungs[len(shared) :]) if shared else tuple(rungs)


def memory_of(rungs: Sequence[Rung], process: int, processes: int) -> int | None:
    """Bytes of its device that a process may use: those there are, shared out evenly to the processes on it; None
    where the device does not say."""
    shared = devices(rungs)
    if not shared:
        return None
    mine = process % len(shared)
    beside = sum(number % len(shared) == mine for number in range(processes))
    whole = device_memory(shared[mine])
    return int(DEVICE_SHARE * whole / max(1, beside)) if whole else None


def process_options() -> RuntimeOptions:
    """How models run in this process, by what the worker's command left in the environment."""
    processes = int(os.environ.get("TALKREEL_PROCESSES", "1"))
    strict = bool(os.environ.get("TALKREEL_STRICT_PROVIDERS"))
    options = RuntimeOptions(threads_per_process(), strict=strict, memory=memory_allowed() // processes)
    stated = os.environ.get("TALKREEL_PROVIDERS")
    if not stated:
        return options
    rungs = parse_rungs(stated)
    process = int(getattr(current_process(), "index", 0) or 0)  # outside a pool there is one process
    memory = memory_of(rungs, process, processes)
    return replace(options, providers=ladder_of(rungs, process), device_memory=memory)
