"""The denoiser of the embedded pack: what it takes to be the clean motion.

- Lips follow the sound by a trained network (lips.py) that does not look at the noise: every seed has the same.
- Head pose and the drives of blinks, gaze and brows are made by diffusion (life.py).
- Lids, gaze and brows are functions of their drives (eyes.py, lips.py), which are columns of the vector that the
  decoder leaves out: a blink is a whole one, both eyes look the same way.
"""

from __future__ import annotations

import numpy as np
from onnx import TensorProto

from .anatomy import UNITS
from .architecture import (
    AUDIO_SIZE,
    BLINK_DRIVE,
    BROW_DRIVE,
    GAZE_X_DRIVE,
    GAZE_Y_DRIVE,
    MOTION_SIZE,
)
from .eyes import eyes
from .idle_motion import PREVIOUS, WINDOW
from .life import life
from .lips import brows, lips
from .writer import Graph, Value

JOINT_DECAY = {"mouth": 0.5, "jaw": 0.5, "tongue": 0.5}
"""What is left from frame to frame of a difference to the previous window's last frame, by the first
letters of the coefficient. Eyes and brows have no difference: their drives go on smoothly."""


def build_denoiser() -> Graph:
    """`motion` [2, 100, 63], `audio` [2, 100, A], `previous_motion`, `previous_audio` [2, 10, ...], `step` [2]
    -> `motion_prediction` [2, 110, 63], the clean motion; its first 10 rows are the previous frames."""
    g = Graph("denoiser")
    noisy = g.input("motion", [2, WINDOW, MOTION_SIZE])
    audio = g.input("audio", [2, WINDOW, AUDIO_SIZE])
    previous = g.input("previous_motion", [2, PREVIOUS, MOTION_SIZE])
    previous_audio = g.input("previous_audio", [2, PREVIOUS, AUDIO_SIZE])
    step = g.input("step", [2], TensorProto.INT64)

    features = g.concat([previous_audio, audio], axis=1)
    moved = life(g, noisy, features, previous, step)
    expression = lips(g, features) + brows(moved[BROW_DRIVE])
    expression = expression + eyes(g, moved[BLINK_DRIVE], moved[GAZE_X_DRIVE], moved[GAZE_Y_DRIVE])
    expression = _joined(g, expression, previous[:, :, : len(UNITS)])
    nothing = g.constant(np.zeros((2, WINDOW, 1), np.float32))
    rest = [moved[column][:, PREVIOUS:] if column in moved else nothing for column in range(len(UNITS), MOTION_SIZE)]
    clean = g.concat([previous, g.concat([expression, *rest], axis=2)], axis=1)
    g.output("motion_prediction", clean, [2, PREVIOUS + WINDOW, MOTION_SIZE])
    return g


def rest_conditioning() -> np.ndarray:
    """start_audio, start_motion, null_audio in one row: nothing heard, and the portrait at rest, are zeros."""
    return np.zeros(PREVIOUS * (AUDIO_SIZE + MOTION_SIZE) + AUDIO_SIZE, np.float32)


def _joined(g: Graph, expression: Value, previous: Value) -> Value:
    """[2, 110, 52] -> the new [2, 100, 52], starting where the previous window ended.

    Near its end a window cannot know what comes; the next one does, and its difference fades out.
    """
    decay = np.array([next((d for part, d in JOINT_DECAY.items() if name.startswith(part)), 0.0) for name in UNITS])
    fade = np.round(np.cumprod(np.tile(decay, (WINDOW, 1)), axis=0), 4)
    new = expression[:, PREVIOUS:] + (previous[:, -1:] - expression[:, PREVIOUS - 1 : PREVIOUS]) * fade
    least = [-1.0 if name.startswith("mouthSmile") else 0.0 for name in UNITS]
    return g.maximum(new, least)
