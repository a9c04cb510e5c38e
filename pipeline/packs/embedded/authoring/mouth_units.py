"""The mouth's units as the picture shows them: the measured ones with lips of an even, rounded outline.

The measured head's lips open into a wedge and differ from left to right, and its rounded lips grow thin.
Here each unit's lips follow profiles over the mouth: s is 0 at its middle and 1 at its corners.
Lengths are decimetres of the average head, for a coefficient of 1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from .anatomy import (
    LIP_MIDDLE,
    LOWER_INNER,
    LOWER_LIP_ROWS,
    MOUTH_CORNERS,
    NEUTRAL,
    OUTER_MOUTH_CORNERS,
    UNIT_OFFSETS,
    UNITS,
    UPPER_INNER,
    UPPER_LIP_ROWS,
)  # fmt: skip
from .skin_stretch import stretched
from .tongue import tongue_unit

Floats = npt.NDArray[np.float32]

_S = [0.82, 0.67, 0.45, 0.22, 0.0, 0.22, 0.45, 0.67, 0.82]
"""s of the nine columns of the lips."""

# Heights over those columns, 1 at the middle (the ellipse is drawn in at its ends, where skin would be torn
# otherwise); as numbers, for powers may differ in the last bit between machines.
ELLIPSE = [0.50, 0.71, 0.88, 0.97, 1.0, 0.97, 0.88, 0.71, 0.50]
SUPPLE = [0.39, 0.61, 0.83, 0.96, 1.0, 0.96, 0.83, 0.61, 0.39]
PARABOLA = [0.33, 0.55, 0.80, 0.95, 1.0, 0.95, 0.80, 0.55, 0.33]
ARC = [0.16, 0.37, 0.68, 0.92, 1.0, 0.92, 0.68, 0.37, 0.16]
"""Steepest half-way between middle and corners, so that these are round and not pulled to points."""

_CORNERS = [*MOUTH_CORNERS, *OUTER_MOUTH_CORNERS]
_UPPER, _LOWER = [UPPER_INNER, *UPPER_LIP_ROWS], [LOWER_INNER, *LOWER_LIP_ROWS]
DEPTH = 0.5
"""Share that is left of how much further than the corners the middle of a lip moves forwards or back: in a head seen
from the side all of it would tear the corners."""


@dataclass(frozen=True)
class LipShape:
    """Displacement of the lips' rows: y at the middle (inner edge first, outwards), towards the corners' y."""

    upper: Sequence[float]
    lower: Sequence[float]
    corner: float
    """y of the corners."""
    inwards: float
    """Of the corners, towards the middle."""
    outline: Sequence[float]
    """Heights of the inner edge over the columns."""
    rim: Sequence[float]
    """The same of the outermost row."""
    zipped: float = 0.0
    """By how much each inner edge goes to meet the other near the corners."""


def _open(shape: LipShape, unit: Floats) -> dict[int, tuple[float, float, float]]:
    """(x, y, z) of every point of the lips; depths as the measured unit has them in the middle and at the corners."""
    moves: dict[int, tuple[float, float, float]] = {}
    back = math.fsum(unit[_CORNERS, 2].astype(float).tolist()) / len(_CORNERS)
    for rows, middles, towards in ((_UPPER, shape.upper, 1.0), (_LOWER, shape.lower, -1.0)):
        for depth, (row, middle) in enumerate(zip(rows, middles, strict=True)):
            outer = depth / (len(rows) - 1)
            for column, (point, s) in enumerate(zip(row, _S, strict=True)):
                height = shape.outline[column] * (1 - outer) + shape.rim[column] * outer
                side = 1.0 if column < 4 else -1.0
                y = shape.corner + (middle - shape.corner) * height
                if depth < 2:
                    y += towards * shape.zipped * s * s * (1 - s) * 5
                further = (float(unit[row[LIP_MIDDLE], 2]) - back) * DEPTH
                moves[point] = (side * shape.inwards * s, y, back + further * height)
    for index, point in enumerate(_CORNERS):
        moves[point] = ((1.0, -1.0)[index % 2] * shape.inwards, shape.corner, back)
    return moves


SHAPES = {
    "jawOpen": LipShape(
        upper=[0.002, 0.006, 0.010, 0.014], lower=[0.339, 0.340, 0.334, 0.326], corner=0.125, inwards=0.028,
        outline=SUPPLE, rim=ELLIPSE,
    ),
    "mouthFunnel": LipShape(
        upper=[-0.050, -0.056, -0.057, -0.054], lower=[0.084, 0.090, 0.087, 0.080], corner=0.008, inwards=0.036,
        outline=SUPPLE, rim=ELLIPSE,
    ),
    "mouthPucker": LipShape(
        upper=[-0.004, -0.012, -0.021, -0.025], lower=[-0.003, 0.006, 0.018, 0.022], corner=-0.006, inwards=0.068,
        outline=PARABOLA, rim=ELLIPSE, zipped=0.026,
    ),
}  # fmt: skip

SMILE = LipShape(
    upper=[-0.030, -0.029, -0.027, -0.024],
    lower=[-0.060, -0.062, -0.066, -0.070],
    corner=-0.104,
    inwards=-0.060,
    outline=ARC,
    rim=ARC,
)
"""Of both sides together."""


def smile_units() -> tuple[Floats, Floats]:
    """[478, 3] mouthSmile of the left and of the right: the measured ones, whose corners together rise in an arc.

    What the lips and the skin do otherwise than measured is shared out between the sides over the middle of the lips.
    """
    left, right = (UNIT_OFFSETS[UNITS.index(f"mouthSmile{side}")] for side in ("Left", "Right"))
    measured = left + right
    change = stretched(measured, _open(SMILE, measured), evenness=0) - measured
    middle, corner = NEUTRAL[UPPER_INNER[LIP_MIDDLE], 0], NEUTRAL[MOUTH_CORNERS[1], 0]
    on_left = ((NEUTRAL[:, 0:1] - middle) / (corner - middle) + np.float32(0.5)).clip(0, 1)
    return left + change * on_left, right + change * (1 - on_left)


def undone_smile() -> Floats:
    """[478, 3] mouthSmile of both sides with lips that stay as far apart as they are, to take away from a smile."""
    left, right = smile_units()
    smile = left + right
    result = smile.copy()
    for column, (upper, lower) in enumerate(zip(UPPER_INNER, LOWER_INNER, strict=True)):
        middle = (smile[upper, 1] + smile[lower, 1]) * np.float32(0.5)
        for rows, edge in ((_UPPER, upper), (_LOWER, lower)):
            for row in rows:
                result[row[column], 1] += middle - smile[edge, 1]
    return result


def mouth_units() -> Floats:
    """[52, 478, 3] UNIT_OFFSETS with the lips of SHAPES and of SMILE, and a tongue."""
    units = UNIT_OFFSETS.copy()
    units[UNITS.index("tongueOut")] = tongue_unit()
    for name, shape in SHAPES.items():
        index = UNITS.index(name)
        units[index] = stretched(UNIT_OFFSETS[index], _open(shape, UNIT_OFFSETS[index]), evenness=1)
    for side, unit in zip(("Left", "Right"), smile_units(), strict=True):
        units[UNITS.index(f"mouthSmile{side}")] = unit
    return units
