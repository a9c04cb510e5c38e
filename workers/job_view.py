"""A job as it stands at one moment."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from .order import Order

STALLED = 20.0
"""Seconds without getting further after which a step counts as stalled."""


@dataclass(frozen=True)
class StepState:
    """One step as it stands: "sent", "running", "handed back" or "done".

    Redis times, in seconds. `at`: the last change or sign of life of its worker. `begun`: when a worker took it.
    `moved`: when its work last got further, at first when it was sent. `due`: when a step that was handed back is
    sent again.
    `lacks`: how often it was handed back for want of memory, or of Redis.
    `owner`: who runs it (see `owners`). `last`: who had it before and lost it or handed it back.
    `result`: what the task returned (small JSON), once it is done.
    """

    status: str
    starts: int = 0
    owner: str = ""
    at: float = 0.0
    sends: int = 0
    note: str = ""
    due: float = 0.0
    begun: float = 0.0
    moved: float = 0.0
    last: str = ""
    lacks: int = 0
    result: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class JobView:
    """A job read at one moment. `budget`: what was decided to meet its deadline, once it was; the order is as lowered
    by it."""

    order: Order
    state: str
    error: dict[str, Any] | None
    steps: Mapping[str, StepState]
    now: float
    budget: dict[str, Any] | None = None

    def result(self, step: str) -> dict[str, Any] | None:
        """What a step returned, or None while it is not done."""
        found = self.steps.get(step)
        return found.result if found and found.status == "done" else None

    def standstill(self, step: str) -> float:
        """Seconds since a step got further, that it waited for a worker included; 0 for one that is done. Being
        taken by a worker that hands it back at once is no step forward."""
        state = self.steps[step]
        if state.status == "done":
            return 0.0
        since = max(state.moved, state.begun) if state.status == "running" else state.moved
        return max(0.0, self.now - since)

    def stalled(self) -> list[str]:
        """Steps that stand still for longer than `STALLED`, while the job runs."""
        return [step for step in self.steps if self.state == "running" and self.standstill(step) > STALLED]


def read_step(text: bytes) -> StepState:
    """A step as it is written in Redis."""
    data = json.loads(text)
    # Another version may write more.
    known = {item.name: data[item.name] for item in fields(StepState) if item.name in data}
    return StepState(**{**known, "result": json.loads(data["result"]) if "result" in data else {}})
