"""The denoiser of the embedded pack: what it takes to be the clean motion, hand-built.

Three parts of the motion vector, three ways to know x0:

- Lips follow the sound. Features become shares of visemes, shares become coefficients (lips.py); the
  noise is not looked at, so every seed gives the same lips.
- Head pose and the drives of blinks, gaze and brows are Gaussian processes (idle_motion.py). For those
  the posterior mean of x0 given x_t is known exactly and linear,

      x0 = mu + U diag(sqrt(abar) l / (abar l + 1 - abar)) U' (x_t - sqrt(abar) mu),

  with mu, U, l conditioned on the previous window's last frames, so the sampler draws true samples
  that go on smoothly over the joint.
- Lids, gaze and brows are functions of their drives (eyes.py, lips.py), which are columns of the
  vector that the decoder leaves out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from onnx import TensorProto

from .anatomy import UNITS
from .eyes import eyes
from .features import FEATURES
from .idle_motion import PREVIOUS, TABLES, WINDOW
from .lips import brows, lips
from .schedule import cosine_schedule
from .writer import Graph, Value

AUDIO_SIZE = len(FEATURES)
SCALE, TRANSLATE_X, TRANSLATE_Y, PITCH, YAW, ROLL = 52, 53, 54, 56, 57, 58
BLINK_DRIVE, GAZE_X_DRIVE, GAZE_Y_DRIVE, BROW_DRIVE = 59, 60, 61, 62
MOTION_SIZE = 63


@dataclass(frozen=True)
class Process:
    """A Gaussian process of idle_motion.py and the columns it moves, each with its standard deviation
    in the vector's own unit (pose: 2 degrees; scale, translation: 0.1)."""

    kernel: str
    columns: Mapping[int, float]


PROCESSES = (
    Process("head", {PITCH: 0.42, YAW: 0.8, ROLL: 0.4, TRANSLATE_X: 0.06, TRANSLATE_Y: 0.04, SCALE: 0.04}),
    Process("glance", {GAZE_X_DRIVE: 1.0, GAZE_Y_DRIVE: 1.0, BROW_DRIVE: 1.0}),
    Process("blink", {BLINK_DRIVE: 1.0}),
)


JOINT_DECAY = {"mouth": 0.5, "jaw": 0.5, "brow": 0.85}
"""What is left from frame to frame of a difference to the previous window's last frame, by the first
letters of the coefficient. Eyes have no difference: all they follow is known in time."""


def build_denoiser() -> Graph:
    """`motion` [2, 100, 63], `audio` [2, 100, 8], `previous_motion`, `previous_audio` [2, 10, ...], `step` [2]
    -> `motion_prediction` [2, 110, 63], the clean motion; its first 10 rows are the previous frames."""
    g = Graph("denoiser")
    noisy = g.input("motion", [2, WINDOW, MOTION_SIZE])
    audio = g.input("audio", [2, WINDOW, AUDIO_SIZE])
    previous = g.input("previous_motion", [2, PREVIOUS, MOTION_SIZE])
    previous_audio = g.input("previous_audio", [2, PREVIOUS, AUDIO_SIZE])
    step = g.input("step", [2], TensorProto.INT64)

    moved = {column: value for process in PROCESSES
             for column, value in _posterior(g, process, noisy, previous, step).items()}  # fmt: skip
    drives = {c: g.concat([previous[:, :, c : c + 1], moved[c]], axis=1)
              for c in (BLINK_DRIVE, GAZE_X_DRIVE, GAZE_Y_DRIVE, BROW_DRIVE)}  # fmt: skip
    features = g.concat([previous_audio, audio], axis=1)
    expression = lips(g, features) + brows(g, features, drives[BROW_DRIVE])
    expression = expression + eyes(g, drives[BLINK_DRIVE], drives[GAZE_X_DRIVE], drives[GAZE_Y_DRIVE])
    expression = _joined(g, expression, previous[:, :, : len(UNITS)])
    nothing = g.constant(np.zeros((2, WINDOW, 1), np.float32))
    rest = g.concat([moved.get(column, nothing) for column in range(len(UNITS), MOTION_SIZE)], axis=2)
    clean = g.concat([previous, g.concat([expression, rest], axis=2)], axis=1)
    g.output("motion_prediction", clean, [2, PREVIOUS + WINDOW, MOTION_SIZE])
    return g


def rest_conditioning() -> np.ndarray:
    """start_audio, start_motion, null_audio in one row: silence, and the portrait at rest, are zeros."""
    return np.zeros(PREVIOUS * (AUDIO_SIZE + MOTION_SIZE) + AUDIO_SIZE, np.float32)


def _posterior(g: Graph, process: Process, noisy: Value, previous: Value, step: Value) -> dict[int, Value]:
    """Mean of x0 given x_t for the columns of a process: [2, 100, 1] each."""
    with np.load(TABLES) as tables:
        carry, modes, variances = (tables[f"{process.kernel}_{part}"] for part in ("carry", "modes", "variances"))
    columns = list(process.columns)
    deviations = np.array(list(process.columns.values()))
    spread = np.round(variances[:, None].astype(np.float64) * deviations**2, 9)  # [modes, columns]
    kept = g.constant(cosine_schedule()[:, 1])._op("Gather", step).reshape(2, 1, 1)
    signal = kept.sqrt()
    mean = g.constant(carry) @ previous.take(columns, axis=2)
    surprise = g.constant(np.ascontiguousarray(modes.T)) @ (noisy.take(columns, axis=2) - signal * mean)
    believed = surprise * (signal * spread / (kept * spread + (1 - kept)))
    clean = mean + g.constant(modes) @ believed
    return {column: clean[:, :, i : i + 1] for i, column in enumerate(columns)}


def _joined(g: Graph, expression: Value, previous: Value) -> Value:
    """[2, 110, 52] -> the new [2, 100, 52], starting where the previous window ended.

    Near its end a window cannot know what comes; the next one does, and its difference fades out.
    """
    decay = np.array([next((d for part, d in JOINT_DECAY.items() if name.startswith(part)), 0.0) for name in UNITS])
    fade = np.round(np.cumprod(np.tile(decay, (WINDOW, 1)), axis=0), 4)
    new = expression[:, PREVIOUS:] + (previous[:, -1:] - expression[:, PREVIOUS - 1 : PREVIOUS]) * fade
    least = [-1.0 if name.startswith("mouthSmile") else 0.0 for name in UNITS]
    return g.maximum(new, least)
