"""Eyes of the denoiser: blinks and gaze, each a function of a drive that wanders (idle_motion.py)."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto

from .expression import both, coefficients
from .writer import Graph, Value

BLINK = (0.35, 0.85, 1.0, 0.9, 0.6, 0.33, 0.14, 0.04)
"""Lid closure 1, 2, ... frames after the peak of its drive: down in 3 frames, up in 5."""

BLINK_THRESHOLD = 0.35
"""A peak of the drive below it passes without a blink; 0 is no thought of one."""

GAZE_STEP = {"x": 0.1, "y": 0.08}
"""Coefficient of eyeLook for one step of the drive."""


def eyes(g: Graph, blink_drive: Value, gaze_x: Value, gaze_y: Value) -> Value:
    """Blinks at the peaks of their drive, and gaze that rests and leaps: [2, 110, 52]."""
    here, before, after = blink_drive[:, 1:-1], blink_drive[:, :-2], blink_drive[:, 2:]
    floats = TensorProto.FLOAT
    peak = (here > before).cast(floats) * (1 - (here < after).cast(floats)) * (here > BLINK_THRESHOLD).cast(floats)
    reach = len(BLINK)
    # Row j of `peak` is frame j + 1, and the lid follows from the frame after: no look ahead is needed.
    closing = g.op("Conv", peak.transpose(0, 2, 1), np.array(BLINK[::-1]).reshape(1, 1, reach), pads=[reach + 1, 0])
    lids = closing.transpose(0, 2, 1).clip(0, 1)
    x, y = leaps(gaze_x) * GAZE_STEP["x"], leaps(gaze_y) * GAZE_STEP["y"]
    left, right, up, down = (part.clip(0, None) for part in (x, -x, y, -y))
    return g.concat([lids, left, right, up, down], axis=2) @ coefficients([
        {**both("eyeBlink", 1.0)},
        {"eyeLookOutLeft": 1.0, "eyeLookInRight": 1.0},
        {"eyeLookInLeft": 1.0, "eyeLookOutRight": 1.0},
        {**both("eyeLookUp", 1.0)},
        {**both("eyeLookDown", 1.0)},
    ])  # fmt: skip


def leaps(drive: Value) -> Value:
    """Whole numbers that the drive is nearest to, changing over the last fifth of the way."""
    whole = drive.op("Round")
    off = drive - whole
    return whole + off.sign() * (off.abs() - 0.4).clip(0, None) * 5
