"""What a portrait costs: milliseconds a frame on one core, bytes of features, seconds to load."""

from __future__ import annotations

import statistics
import time
from dataclasses import dataclass

from ..acting import POSES, Actor, open_studio


@dataclass(frozen=True)
class Cost:
    frame_ms: float
    """CPU time, so that other programs on the machine do not count: the median of `RUNS`."""
    features: int
    load_s: float


RUNS = 12


def cost(actor: Actor) -> Cost:
    """The studio of the actor must have been opened with one thread."""
    keypoints = actor.keypoints([POSES["yaw +12 oh"]] * RUNS)
    times = []
    frames = actor.frames(keypoints)
    for _ in range(RUNS):
        start = time.process_time()
        next(frames)
        times.append(time.process_time() - start)
    features = sum(array.nbytes for array in actor.appearance.features.values())
    start = time.process_time()
    open_studio().warm_up(motion=False)
    return Cost(statistics.median(times) * 1000, features, time.process_time() - start)
