"""Life of the denoiser: head, gaze, brows and blinks, made by diffusion.

Without sound they are Gaussian processes (idle_motion.py), of which the posterior mean of x0 given x_t is known
exactly and linear,

    x0 = mu + U diag(sqrt(abar) l / (abar l + 1 - abar)) U' (x_t - sqrt(abar) mu),

with mu, U, l conditioned on the previous window's last frames. A trained network adds what speech does to it, nods,
glances, raised brows, blinks; its correction is projected on motions that go on smoothly from those frames.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from .architecture import (
    BLINK_DRIVE,
    BROW_DRIVE,
    GAZE_X_DRIVE,
    GAZE_Y_DRIVE,
    HEARD,
    LIFE,
    LIFE_COLUMNS,
    LOUDNESS,
    PITCH,
    PITCH_ANGLE,
    ROLL,
    SCALE,
    TRANSLATE_X,
    TRANSLATE_Y,
    YAW,
)
from .convolutions import residual_blocks, silu
from .idle_motion import PREVIOUS, TABLES, WINDOW
from .schedule import cosine_schedule
from .visemes import CLASSES, SILENCE
from .weights import Weights
from .writer import Graph, Value


@dataclass(frozen=True)
class Process:
    """A Gaussian process of idle_motion.py and the columns it moves, each with its standard deviation in the vector's
    own unit (pose: 2 degrees; scale, translation: 0.1). `correction`: the kernel of the motions that the network adds.
    """

    kernel: str
    correction: str
    columns: Mapping[int, float]


PROCESSES = (
    Process(
        "head",
        "accent",
        {PITCH_ANGLE: 0.42, YAW: 0.8, ROLL: 0.4, TRANSLATE_X: 0.06, TRANSLATE_Y: 0.04, SCALE: 0.04},
    ),
    Process("glance", "accent", {GAZE_X_DRIVE: 1.0, GAZE_Y_DRIVE: 1.0, BROW_DRIVE: 0.8}),
    Process("blink", "lid", {BLINK_DRIVE: 0.4}),
)


def life(g: Graph, noisy: Value, features: Value, previous: Value, step: Value) -> dict[int, Value]:
    """The clean columns of the life, the previous frames before them: [2, 110, 1] each."""
    kept = g.constant(cosine_schedule()[:, 1]).op("Gather", step).reshape(2, 1, 1)
    before, seen = previous.take(LIFE_COLUMNS, axis=2), noisy.take(LIFE_COLUMNS, axis=2)
    with np.load(TABLES) as tables:
        mean = _joined([_posterior(g, tables, process, seen, before, kept) for process in PROCESSES])
        both = g.concat([g.concat([before, seen], axis=1), g.concat([before, mean], axis=1)], axis=2)
        wanted = _network(g, both, features, kept)[:, PREVIOUS:]
        corrections = []
        for process in PROCESSES:
            modes = tables[f"{process.correction}_modes"]
            mine = wanted.take(_channels(process), axis=2)
            corrections.append(g.constant(modes) @ (g.constant(np.ascontiguousarray(modes.T)) @ mine))
    clean = g.concat([before, mean + _joined(corrections)], axis=1)
    return {column: clean[:, :, i : i + 1] for i, column in enumerate(LIFE_COLUMNS)}


def _channels(process: Process) -> list[int]:
    return [LIFE_COLUMNS.index(column) for column in process.columns]


def _joined(parts: list[Value]) -> Value:
    """A value [2, 100, n] for each process -> [2, 100, 10] in the order of LIFE_COLUMNS."""
    order = [channel for process in PROCESSES for channel in _channels(process)]
    return parts[0].graph.concat(parts, axis=2).take([order.index(i) for i in range(len(order))], axis=2)


def _posterior(
    g: Graph, tables: Mapping[str, np.ndarray], process: Process, seen: Value, before: Value, kept: Value
) -> Value:
    """Mean of the process given the noisy and the previous frames."""
    carry, modes, variances = (tables[f"{process.kernel}_{part}"] for part in ("carry", "modes", "variances"))
    deviations = np.array(list(process.columns.values()))
    spread = np.round(variances[:, None].astype(np.float64) * deviations**2, 9)  # [modes, columns]
    signal = kept.sqrt()
    channels = _channels(process)
    mean = g.constant(carry) @ before.take(channels, axis=2)
    surprise = g.constant(np.ascontiguousarray(modes.T)) @ (seen.take(channels, axis=2) - signal * mean)
    return mean + g.constant(modes) @ (surprise * (signal * spread / (kept * spread + (1 - kept))))


def _network(g: Graph, both: Value, features: Value, kept: Value) -> Value:
    """[2, 110, 20] noisy life and its mean -> the correction wanted [2, 110, 10]."""
    weights = Weights(g, "life")
    heard = features[:, :, HEARD : HEARD + 1]
    count = len(CLASSES)
    silent = features[:, :, SILENCE : SILENCE + 1] + features[:, :, count + SILENCE : count + SILENCE + 1]
    past = np.zeros((2, PREVIOUS + WINDOW, 1), np.float32)
    past[:, :PREVIOUS] = 1
    prosody = features[:, :, LOUDNESS : LOUDNESS + 1], features[:, :, PITCH : PITCH + 1]
    x = g.concat([both, *prosody, heard - 0.5 * silent, heard, past], axis=2).transpose(0, 2, 1)
    level = g.concat([kept.sqrt(), (1 - kept).sqrt()], axis=2).reshape(2, 2)
    level = silu(weights.linear(silu(weights.linear(level, "step.0")), "step.2"))
    return weights.conv(residual_blocks(weights.conv(x, "first"), weights, LIFE, level), "last").transpose(0, 2, 1)
