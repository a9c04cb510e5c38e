"""How fast the fleet's machines are, as its workers measure it, and which workers are there.

Keys: `fleet:pace:DIGEST` of a pack and the code, a hash of figures by what they are of; `fleet:workers`, a hash of
workers by name. Both have a lifetime; times are Redis' own clock.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any

from pipeline.machine import cpu_name
from pipeline.runtime.options import cores_allowed

from .config import threads_per_process
from .connections import RedisServer
from .keys import digest

LIFETIME = 7 * 24 * 3600
"""Seconds that a figure is kept after it was last measured: machines of a kind do not change."""

PRESENT = 10.0
"""Seconds for which a worker counts as present after its last sign; it gives one a second."""

RECORD = """
local now = redis.call('TIME'); now = tonumber(now[1]) + tonumber(now[2]) / 1000000
local text, seconds = redis.call('HGET', KEYS[1], ARGV[1]), tonumber(ARGV[2])
if text then seconds = (cjson.decode(text).seconds + seconds) / 2 end
redis.call('HSET', KEYS[1], ARGV[1], cjson.encode({seconds = seconds, at = now}))
redis.call('EXPIRE', KEYS[1], ARGV[3])
"""
"""Arguments: 1 what it is of, 2 seconds, 3 lifetime. The mean with what was known before, so that the last ones
count most and one slow frame does little."""


@dataclass(frozen=True)
class Figure:
    """Seconds of one kind of work on one kind of machine.

    `work`: "key frame", in one process; "between" and "film", a million pixels each (see `pipeline.pace.Pace`).
    `preset` and `rung` (execution provider): of key frames, else "". `machine`: see `machine_kind`.
    `at`: when it was measured last.
    """

    work: str
    preset: str
    rung: str
    machine: str
    seconds: float
    at: float


@dataclass(frozen=True)
class Present:
    """A worker that is there: its queues, its processes, the kind of its machine."""

    queues: tuple[str, ...]
    processes: int
    machine: str


@cache
def machine_kind() -> str:
    """What a process's speed depends on here: the processor, and the cores and threads that it may use."""
    return f"{cpu_name()}, {cores_allowed()} cores, {threads_per_process()} threads a process"


class Paces:
    """Figures and workers in one Redis. Every method raises FleetUnreachableError or FleetFullError."""

    def __init__(self, server: RedisServer, prefix: str = "fleet") -> None:
        self.server = server
        self.redis: Any = server.client()
        self.prefix = prefix
        self._record = self.redis.register_script(RECORD)

    def _figures(self, pack: str, code: str) -> str:
        return f"{self.prefix}:pace:{digest(pack, code)}"

    @property
    def _workers(self) -> str:
        return f"{self.prefix}:workers"

    def record(
        self, pack: str, code: str, work: str, seconds: float, *, preset: str = "", rung: str = "", machine: str = ""
    ) -> None:
        """Add a measurement of this kind of machine, or another. `pack`: its identity."""
        name = json.dumps([work, preset, rung, machine or machine_kind()])
        with self.server.errors():
            self._record(keys=[self._figures(pack, code)], args=[name, seconds, LIFETIME])

    def figures(self, pack: str, code: str) -> list[Figure]:
        """All that is known of a pack."""
        with self.server.errors():
            found = self.redis.hgetall(self._figures(pack, code))
        return [Figure(*json.loads(name), **json.loads(text)) for name, text in found.items()]

    def show(self, worker: str, queues: Iterable[str], processes: int) -> None:
        """This worker is there."""
        text = {"queues": list(queues), "processes": processes, "machine": machine_kind()}
        with self.server.errors():
            self.redis.hset(self._workers, worker, json.dumps({**text, "at": self._now()}))
            self.redis.expire(self._workers, int(6 * PRESENT))

    def present(self) -> list[Present]:
        """The workers that are there; those that no longer are, are forgotten."""
        with self.server.errors():
            now, found = self._now(), self.redis.hgetall(self._workers)
            workers = {name: json.loads(text) for name, text in found.items()}
            if gone := [name for name, worker in workers.items() if now - worker["at"] > PRESENT]:
                self.redis.hdel(self._workers, *gone)
        return [
            Present(tuple(worker["queues"]), worker["processes"], worker["machine"])
            for name, worker in workers.items()
            if name not in gone
        ]

    def _now(self) -> float:
        seconds, micros = self.redis.time()
        return float(seconds) + micros / 1e6


def by_machine(figures: Iterable[Figure], work: str, preset: str = "") -> dict[str, float]:
    """Seconds by kind of machine; where a machine has used several rungs, of the one used last."""
    fitting = [figure for figure in figures if (figure.work, figure.preset) == (work, preset)]
    return {figure.machine: figure.seconds for figure in sorted(fitting, key=lambda figure: figure.at)}
