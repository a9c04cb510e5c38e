"""Which of the 478 MediaPipe landmarks is what, and the measured expression units.

Sides are the viewer's when a name says `image`, the person's otherwise: the person's right eye
lies on the left of the picture.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

DATA = Path(__file__).parent / "data"

POINTS = 478
MESH_POINTS = 468
"""The face mesh; the ten points after it are the irises."""

FACE_OUTLINE = [
    10, 338, 297, 332, 284, 251, 389, 356, 454, 323, 361, 288, 397, 365, 379, 378, 400, 377,
    152, 148, 176, 149, 150, 136, 172, 58, 132, 93, 234, 127, 162, 21, 54, 103, 67, 109,
]  # fmt: skip
"""Ring from the top of the forehead, clockwise in the picture; index 18 is the chin."""

RIGID = [
    10, 338, 297, 332, 284, 251, 389, 356, 454, 323, 93, 234, 127, 162, 21, 54, 103, 67, 109,
    168, 6, 197, 195, 5, 33, 133, 362, 263,
]  # fmt: skip
"""Points that move with the skull whatever the face does."""

FOREHEAD, CHIN, NOSE_TIP, NOSE_BASE = 10, 152, 1, 2
EARS = [234, 454]
CHEEKS = [205, 425, 50, 280]
FOLDS = ((203, 206, 216, 212), (423, 426, 436, 432))
"""From beside the wings of the nose to below the corners of the mouth."""
CHIN_PATCH = [152, 148, 176, 377, 400, 175, 199, 200, 18]

# Lips: columns run from the left of the picture to the right, rows from the inner edge outwards.
MOUTH_CORNERS = [78, 308]
OUTER_MOUTH_CORNERS = [61, 291]
UPPER_INNER = [191, 80, 81, 82, 13, 312, 311, 310, 415]
LOWER_INNER = [95, 88, 178, 87, 14, 317, 402, 318, 324]
UPPER_LIP_ROWS = [
    [183, 42, 41, 38, 12, 268, 271, 272, 407],
    [184, 74, 73, 72, 11, 302, 303, 304, 408],
    [185, 40, 39, 37, 0, 267, 269, 270, 409],
]
LOWER_LIP_ROWS = [
    [96, 89, 179, 86, 15, 316, 403, 319, 325],
    [77, 90, 180, 85, 16, 315, 404, 320, 307],
    [146, 91, 181, 84, 17, 314, 405, 321, 375],
]
UPPER_EDGE = [78, *UPPER_INNER, 308]
LOWER_EDGE = [78, *LOWER_INNER, 308]
LIP_MIDDLE = 4
"""Column of the middle of the lips."""


class Eye:
    """Corners, lid edges and folds, and iris of one eye; every list runs from left to right in the picture."""

    def __init__(
        self, corners: Sequence[int], upper: Sequence[int], lower: Sequence[int],
        upper_fold: Sequence[int], lower_fold: Sequence[int], iris: Sequence[int],
    ) -> None:  # fmt: skip
        self.corners = list(corners)
        self.upper = list(upper)
        self.lower = list(lower)
        self.upper_fold = list(upper_fold)
        self.lower_fold = list(lower_fold)
        self.iris = list(iris)
        """Centre, then four points of the rim."""

    @property
    def upper_edge(self) -> list[int]:
        """The upper lid with both corners."""
        return [self.corners[0], *self.upper, self.corners[1]]

    @property
    def lower_edge(self) -> list[int]:
        """The lower lid with both corners."""
        return [self.corners[0], *self.lower, self.corners[1]]


RIGHT_EYE = Eye(
    corners=[33, 133],
    upper=[246, 161, 160, 159, 158, 157, 173],
    lower=[7, 163, 144, 145, 153, 154, 155],
    upper_fold=[247, 30, 29, 27, 28, 56, 190],
    lower_fold=[25, 110, 24, 23, 22, 26, 112],
    iris=[468, 469, 470, 471, 472],
)
LEFT_EYE = Eye(
    corners=[362, 263],
    upper=[398, 384, 385, 386, 387, 388, 466],
    lower=[382, 381, 380, 374, 373, 390, 249],
    upper_fold=[414, 286, 258, 257, 259, 260, 467],
    lower_fold=[341, 256, 252, 253, 254, 339, 255],
    iris=[473, 474, 475, 476, 477],
)
EYES = [RIGHT_EYE, LEFT_EYE]

_basis = np.load(DATA / "expression_basis.npz")

UNITS: list[str] = [str(name) for name in _basis["names"]]
"""The 52 ARKit units, in the order of every basis here."""

_TO_PICTURE_AXES = np.array([1, -1, -1], np.float32)  # the data has y up and z towards the viewer

NEUTRAL: npt.NDArray[np.float32] = _basis["neutral"].astype(np.float32) * _TO_PICTURE_AXES
"""[478, 3] landmarks of the average head, decimetres, y down, smaller z nearer the viewer."""

UNIT_OFFSETS: npt.NDArray[np.float32] = _basis["delta"].astype(np.float32) * _TO_PICTURE_AXES
"""[52, 478, 3] displacement of each landmark by each unit at 1.0, same axes and unit."""

UNIT_OFFSETS[:, MESH_POINTS:] = 0  # the measured head has no eyeballs: irises move by our own rule of gaze
UNIT_OFFSETS[:, RIGID] = 0  # at most 3 mm there; the head's motion is read from these points, so hair would follow


def _even_out_below_lip(unit: npt.NDArray[np.float32], reach: float = 0.09) -> None:
    """Let the skin under the lower lip follow the lip, in place.

    On the measured head a lip that rolls out hides the fold below it; a warped picture would fold there.
    Each vertical displacement becomes the mean of those around, weighted 1 / (1 + (distance / reach)^2)^2.
    Summed exactly, so that the last bit is the same on every machine.
    """
    xy = NEUTRAL[:MESH_POINTS, :2].astype(float).tolist()
    moves = unit[:MESH_POINTS, 1].astype(float).tolist()
    lip, chin = NEUTRAL[LOWER_LIP_ROWS[-1][LIP_MIDDLE], 1], NEUTRAL[CHIN, 1]
    for i, (x, y) in enumerate(xy):
        if lip + 0.01 < y < chin - 0.05 and abs(x) < 0.3:
            weights = [1 / (1 + ((x - u) ** 2 + (y - v) ** 2) / reach**2) ** 2 for u, v in xy]
            unit[i, 1] = math.fsum(w * m for w, m in zip(weights, moves, strict=True)) / math.fsum(weights)


for _name in ("mouthFunnel", "mouthPucker"):
    _even_out_below_lip(UNIT_OFFSETS[UNITS.index(_name)])


def indicator(points: Sequence[int]) -> npt.NDArray[np.float32]:
    """[478] 1 at `points`, 0 elsewhere."""
    vector = np.zeros(POINTS, np.float32)
    vector[list(points)] = 1
    return vector


def scatter(columns: Sequence[dict[int, float]]) -> npt.NDArray[np.float32]:
    """[478, columns] matrix whose column j holds the given weight at each given landmark."""
    matrix = np.zeros((POINTS, len(columns)), np.float32)
    for j, weights in enumerate(columns):
        for point, weight in weights.items():
            matrix[point, j] = weight
    return matrix
