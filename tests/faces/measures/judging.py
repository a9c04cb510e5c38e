"""What an independent model reads in rendered frames, against what was asked."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnxruntime as ort
from numpy.typing import NDArray

from pipeline.packs.embedded.authoring.anatomy import EYES, RIGID, UNITS
from pipeline.values import U8

from ..acting import Actor, Pose

F64 = NDArray[np.float64]
MODEL = Path(__file__).parents[2] / "data" / "face_blendshapes.onnx"
STEPS = 6

# The judge's input landmarks and its scores, in its own order (tongueOut is not among them).
JUDGED_POINTS = [
    0, 1, 4, 5, 6, 7, 8, 10, 13, 14, 17, 21, 33, 37, 39, 40, 46, 52, 53, 54, 55, 58, 61, 63, 65, 66, 67, 70, 78,
    80, 81, 82, 84, 87, 88, 91, 93, 95, 103, 105, 107, 109, 127, 132, 133, 136, 144, 145, 146, 148, 149, 150, 152,
    153, 154, 155, 157, 158, 159, 160, 161, 162, 163, 168, 172, 173, 176, 178, 181, 185, 191, 195, 197, 234, 246,
    249, 251, 263, 267, 269, 270, 276, 282, 283, 284, 285, 288, 291, 293, 295, 296, 297, 300, 308, 310, 311, 312,
    314, 317, 318, 321, 323, 324, 332, 334, 336, 338, 356, 361, 362, 365, 373, 374, 375, 377, 378, 379, 380, 381,
    382, 384, 385, 386, 387, 388, 389, 390, 397, 398, 400, 402, 405, 409, 415, 454, 466, *range(468, 478),
]  # fmt: skip
SCORES = ["_neutral", *UNITS[:-1]]

SWEEPS = {"jawOpen": (0.0, 0.8), "mouthPucker": (0.0, 1.0), "mouthFunnel": (0.0, 1.0), "mouthSmile": (0.0, 0.9),
          "eyeBlink": (0.0, 1.0)}  # fmt: skip
"""Unit (both sides where it has them) and the coefficients between which it is swept, from the closed mouth."""


@dataclass(frozen=True)
class Judge:
    model: ort.InferenceSession

    @classmethod
    def open(cls) -> Judge:
        options = ort.SessionOptions()
        options.intra_op_num_threads, options.log_severity_level = 1, 3
        return cls(ort.InferenceSession(str(MODEL), options, providers=["CPUExecutionProvider"]))

    def scores(self, points: F64) -> dict[str, float]:
        """Scores by unit of landmarks [478, 3] in pixels."""
        given = points[JUDGED_POINTS, :2][None].astype(np.float32)
        return dict(
            zip(SCORES, self.model.run(None, {"serving_default_input_points:0": given})[0].tolist(), strict=True)
        )

    def read(self, points: F64, unit: str) -> float:
        """The score of a unit, the mean of both sides where it has two."""
        scores = self.scores(points)
        return float(np.mean([scores[name] for name in (unit, f"{unit}Left", f"{unit}Right") if name in scores]))


@dataclass(frozen=True)
class Sweep:
    """Asked and read values of one unit; `points`: landmarks found in each frame, [478, 3]."""

    unit: str
    asked: F64
    read: F64
    frames: list[U8]
    points: list[F64]

    @property
    def correlation(self) -> float:
        """0 where nothing moved or a face was lost."""
        if not np.isfinite(self.read).all() or np.ptp(self.read) < 1e-3:
            return 0.0
        return float(np.corrcoef(self.asked, self.read)[0, 1])

    @property
    def gain(self) -> float:
        return float(np.ptp(self.read))


def sweep(actor: Actor, judge: Judge, unit: str, steps: int = STEPS) -> Sweep:
    """A smile that the portrait has already is swept from its absence, so that there is something to read."""
    low, high = SWEEPS[unit]
    if unit == "mouthSmile":
        smiling = judge.read(actor.points, unit)
        low, high = low - 0.9 * smiling, high - 0.9 * smiling
    asked = np.linspace(low, high, steps)
    frames = actor.act(*(Pose({unit: float(value)}) for value in asked))
    points = [found for frame in frames if (found := actor.found(frame)) is not None]
    lost = len(points) < len(frames)
    read = np.full(steps, np.nan) if lost else np.array([judge.read(p, unit) for p in points])
    return Sweep(unit, asked, read, frames, points)


def rigid_error(source: F64, points: F64) -> float:
    """How far the rigid part's landmarks lie from the photo's after the best similarity: root mean square, in
    hundredths of the distance between the eyes."""
    a, b = source[RIGID, :2], points[RIGID, :2]
    apart = float(np.linalg.norm(source[EYES[0].corners, :2].mean(0) - source[EYES[1].corners, :2].mean(0)))
    x, y = (p[:, 0] + 1j * p[:, 1] for p in (b - b.mean(0), a - a.mean(0)))
    turned = x * (np.vdot(x, y) / np.vdot(x, x))
    return float(np.sqrt(np.mean(np.abs(turned - y) ** 2)) / apart * 100)
