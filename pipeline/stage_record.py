"""What happened in one stage: its time, where its models ran, what memory it took."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .machine import memory_peak, memory_resident
from .runtime.places import Fall
from .runtime.session import Model
from .runtime.spent import Recovery


@dataclass
class StageRecord:
    """One stage.

    `seconds`: spent in it, all together (stages overlap, so they may sum to more than the whole). `runs`: how often it
    was entered. `first_seconds`: the part of them in which sessions were made and ran for the first time;
    `first_runs`: how many times that was so.
    Where models ran: `provider`, the execution provider of the last; `rungs` of the ladder, in the order of their use;
    `elsewhere`, the nodes that ran on another provider, by model; `falls`, what failed on rungs above; `recoveries`,
    sessions that were made again after a fault.
    `predicted_memory`: bytes that its models are predicted to take, None without models. `peak_memory`: bytes of the
    process, libraries and all: the most that was resident when the stage began or ended, or in its midst where that
    was the process's peak.
    """

    seconds: float = 0.0
    runs: int = 0
    first_seconds: float = 0.0
    first_runs: int = 0
    provider: str | None = None
    rungs: list[str] = field(default_factory=list)
    elsewhere: dict[str, str] = field(default_factory=dict)
    falls: list[Fall] = field(default_factory=list)
    recoveries: list[Recovery] = field(default_factory=list)
    predicted_memory: int | None = None
    peak_memory: int = 0

    @classmethod
    def of_json(cls, data: Mapping[str, Any]) -> StageRecord:
        """The record that `asdict` made this of."""
        falls = [Fall(**fall) for fall in data.get("falls", ())]
        recoveries = [Recovery(**recovery) for recovery in data.get("recoveries", ())]
        return cls(**{**data, "falls": falls, "recoveries": recoveries})

    @classmethod
    def of_run(cls, seconds: float, models: Sequence[Model], memory: int) -> StageRecord:
        """The stage was entered once.

        Args:
            seconds: that it took. models: those that ran in this thread. memory: see `peak_memory`.
        """
        record = cls(seconds=seconds, runs=1, peak_memory=memory)
        for model in models:
            spent, place = model.spent(), model.place
            record = record.plus(
                cls(
                    first_seconds=spent.first_seconds,
                    provider=place.rung.provider,
                    rungs=[str(place.rung)],
                    elsewhere={place.model: str(place.placement)}
                    if place.placement and place.placement.elsewhere
                    else {},
                    falls=list(place.falls),
                    recoveries=list(spent.recoveries),
                )
            )
        record.first_runs = int(record.first_seconds > 0)
        record.predicted_memory = sum(model.predicted_bytes for model in models) if models else None
        return record

    def plus(self, more: StageRecord) -> StageRecord:
        """Both together: sums, lists without repeats, the most memory."""
        predicted = (self.predicted_memory, more.predicted_memory)
        return StageRecord(
            seconds=self.seconds + more.seconds,
            runs=self.runs + more.runs,
            first_seconds=self.first_seconds + more.first_seconds,
            first_runs=self.first_runs + more.first_runs,
            provider=more.provider or self.provider,
            rungs=list(dict.fromkeys((*self.rungs, *more.rungs))),
            elsewhere=self.elsewhere | more.elsewhere,
            falls=list(dict.fromkeys((*self.falls, *more.falls))),
            recoveries=[*self.recoveries, *more.recoveries],
            predicted_memory=max((size for size in predicted if size is not None), default=None),
            peak_memory=max(self.peak_memory, more.peak_memory),
        )


class PeakMemory:
    """The most memory that was resident within a span of time, as far as the system tells without watching."""

    def __init__(self) -> None:
        self._record = memory_peak()
        self._most = memory_resident() or 0

    def end(self) -> int:
        """Bytes: now, at the beginning, or in between where that was more than ever before."""
        peak = memory_peak()
        return max(self._most, memory_resident() or 0, peak if peak > self._record else 0)
