"""What an independent model reads in rendered frames, against what was asked."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnxruntime as ort
from numpy.typing import NDArray

from pipeline.packs.embedded.authoring.anatomy import EYES, RIGID, UNITS
from pipeline.values import U8

from ..acting import Actor, Pose, in_pixels

F64 = NDArray[np.float64]
MODEL = Path(__file__).parents[2] / "data" / "face_blendshapes.onnx"
STEPS = 6
SMALLEST = 1e-7
"""Scores nearer to 0 or 1 than this are taken as this: a float32 tells no more."""

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
        return float(np.mean(self._sides(points, unit)))

    def evidence(self, points: F64, unit: str) -> float:
        """What goes into the model's last sigmoid, of which the score is made.

        Its scores jump: from 0.02 to 0.98 within a third of some units' range. What stands before does not.
        """
        sides = np.clip(self._sides(points, unit), SMALLEST, 1 - SMALLEST)
        return float(np.mean(np.log(sides / (1 - sides))))

    def _sides(self, points: F64, unit: str) -> F64:
        scores = self.scores(points)
        return np.array([scores[name] for name in (unit, f"{unit}Left", f"{unit}Right") if name in scores])


@dataclass(frozen=True)
class Sweep:
    """Asked and read values of one unit; `points`: landmarks found in each frame, [478, 3].

    `evidence` and `ideal`: the judge's evidence from the landmarks found in the frames, and from the very landmarks
    that the frames were driven with, which is what it would read in a picture without fault."""

    unit: str
    asked: F64
    read: F64
    evidence: F64
    ideal: F64
    ideal_read: F64
    frames: list[U8]
    points: list[F64]

    @property
    def correlation(self) -> float:
        """Of the asked coefficients with the scores."""
        return _correlation(self.asked, self.read)

    @property
    def bound(self) -> float:
        """The same of a picture without fault: it falls below 1 by the judge's own jumps."""
        return _correlation(self.asked, self.ideal_read)

    @property
    def fidelity(self) -> float:
        """Correlation of the evidence with that of the landmarks asked for: the picture's part alone."""
        return _correlation(self.ideal, self.evidence)

    @property
    def gain(self) -> float:
        return float(np.ptp(self.read))


def _correlation(asked: F64, read: F64) -> float:
    """0 where nothing moved or a face was lost."""
    if not np.isfinite(read).all() or np.ptp(read) < 1e-3:
        return 0.0
    return float(np.corrcoef(asked, read)[0, 1])


def sweep(actor: Actor, judge: Judge, unit: str, steps: int = STEPS) -> Sweep:
    """A smile that the portrait has already is swept from its absence, so that there is something to read."""
    low, high = SWEEPS[unit]
    if unit == "mouthSmile":
        smiling = judge.read(actor.points, unit)
        low, high = low - 0.9 * smiling, high - 0.9 * smiling
    asked = np.linspace(low, high, steps)
    poses = [Pose({unit: float(value)}) for value in asked]
    driven, frames = [in_pixels(row) for row in actor.keypoints(poses)], actor.act(*poses)
    points = [found for frame in frames if (found := actor.found(frame, head_still=True)) is not None]
    lost, nothing = len(points) < len(frames), np.full(steps, np.nan)
    return Sweep(
        unit,
        asked,
        read=nothing if lost else np.array([judge.read(p, unit) for p in points]),
        evidence=nothing if lost else np.array([judge.evidence(p, unit) for p in points]),
        ideal=np.array([judge.evidence(p, unit) for p in driven]),
        ideal_read=np.array([judge.read(p, unit) for p in driven]),
        frames=frames,
        points=points,
    )


def rigid_error(source: F64, points: F64) -> float:
    """How far the rigid part's landmarks lie from the photo's after the best similarity: root mean square, in
    hundredths of the distance between the eyes."""
    a, b = source[RIGID, :2], points[RIGID, :2]
    apart = float(np.linalg.norm(source[EYES[0].corners, :2].mean(0) - source[EYES[1].corners, :2].mean(0)))
    x, y = (p[:, 0] + 1j * p[:, 1] for p in (b - b.mean(0), a - a.mean(0)))
    turned = x * (np.vdot(x, y) / np.vdot(x, x))
    return float(np.sqrt(np.mean(np.abs(turned - y) ** 2)) / apart * 100)
