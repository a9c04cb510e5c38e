"""Speed of two graphs, in turns, so that what else the machine does meets both."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from .feeds import Feeds
from .runner import Runner


@dataclass(frozen=True)
class Speed:
    """Medians over alternating runs."""

    first: float
    """Seconds a frame."""
    second: float
    ratio: float
    """How many times as fast the second is: the median of each pair's."""
    runs: int
    """Pairs."""

    def to_json(self) -> dict[str, Any]:
        return {
            "seconds_before": float(f"{self.first:.4g}"),
            "seconds_after": float(f"{self.second:.4g}"),
            "ratio": float(f"{self.ratio:.4g}"),
            "pairs": self.runs,
        }


def alternate(
    first: Runner,
    second: Runner,
    frames: Sequence[Feeds],
    *,
    runs: int = 5,
    clock: Callable[[], float] = time.perf_counter,
) -> Speed:
    """Time both graphs on all frames, one after the other and `runs` times, after a run of each to warm up."""
    times: tuple[list[float], list[float]] = ([], [])
    feeds = [runner.runs(frames) for runner in (first, second)]
    for turn in range(runs + 1):
        for runner, rows, taken in zip((first, second), feeds, times, strict=True):
            start = clock()
            for row in rows:
                runner.run(row)
            elapsed = clock() - start
            if turn:
                taken.append(elapsed / len(frames))
    ratios = [a / b for a, b in zip(*times, strict=True)]
    return Speed(statistics.median(times[0]), statistics.median(times[1]), statistics.median(ratios), runs)
