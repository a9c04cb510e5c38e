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
    LOWER_INNER,
    LOWER_LIP_ROWS,
    MESH_POINTS,
    MOUTH_CORNERS,
    NEUTRAL,
    OUTER_MOUTH_CORNERS,
    RIGID,
    UNIT_OFFSETS,
    UNITS,
    UPPER_INNER,
    UPPER_LIP_ROWS,
)  # fmt: skip

Floats = npt.NDArray[np.float32]

_S = [0.82, 0.67, 0.45, 0.22, 0.0, 0.22, 0.45, 0.67, 0.82]
"""s of the nine columns of the lips."""

# Heights over those columns, 1 at the middle (the ellipse is drawn in at its ends, where skin would be torn
# otherwise); as numbers, for powers may differ in the last bit between machines.
ELLIPSE = [0.50, 0.71, 0.88, 0.97, 1.0, 0.97, 0.88, 0.71, 0.50]
SUPPLE = [0.46, 0.66, 0.855, 0.966, 1.0, 0.966, 0.855, 0.66, 0.46]
PARABOLA = [0.33, 0.55, 0.80, 0.95, 1.0, 0.95, 0.80, 0.55, 0.33]

_CORNERS = [*MOUTH_CORNERS, *OUTER_MOUTH_CORNERS]
_UPPER, _LOWER = [UPPER_INNER, *UPPER_LIP_ROWS], [LOWER_INNER, *LOWER_LIP_ROWS]
SKIN_FOLLOWS = 0.10
"""Distance from the lips at which skin makes half of their correction."""


@dataclass(frozen=True)
class LipShape:
    """Displacement of the lips' rows: y at the middle (inner edge first, outwards), towards the corners' y."""

    upper: Sequence[float]
    lower: Sequence[float]
    corner: float
    """y of the corners."""
    inwards: float
    """Of the corners, towards the middle."""
    outline: Sequence[float] = tuple(ELLIPSE)
    zipped: float = 0.0
    """By how much each inner edge goes to meet the other near the corners."""


def _open(shape: LipShape) -> dict[int, tuple[float, float]]:
    """(x, y) of every point of the lips."""
    moves: dict[int, tuple[float, float]] = {}
    for rows, middles, towards in ((_UPPER, shape.upper, 1.0), (_LOWER, shape.lower, -1.0)):
        for depth, (row, middle) in enumerate(zip(rows, middles, strict=True)):
            for column, (point, s, height) in enumerate(zip(row, _S, shape.outline, strict=True)):
                side = 1.0 if column < 4 else -1.0
                y = shape.corner + (middle - shape.corner) * height
                if depth < 2:
                    y += towards * shape.zipped * s * s * (1 - s) * 5
                moves[point] = (side * shape.inwards * s, y)
    for index, point in enumerate(_CORNERS):
        moves[point] = ((1.0, -1.0)[index % 2] * shape.inwards, shape.corner)
    return moves


SHAPES = {
    "jawOpen": LipShape(
        upper=[0.002, 0.006, 0.010, 0.014], lower=[0.339, 0.341, 0.339, 0.334], corner=0.125, inwards=0.028,
        outline=SUPPLE,
    ),
    "mouthFunnel": LipShape(
        upper=[-0.050, -0.056, -0.057, -0.054], lower=[0.084, 0.092, 0.092, 0.088], corner=0.014, inwards=0.036,
        outline=SUPPLE,
    ),
    "mouthPucker": LipShape(
        upper=[-0.004, -0.012, -0.021, -0.025], lower=[-0.003, 0.006, 0.018, 0.022], corner=0.003, inwards=0.058,
        outline=PARABOLA, zipped=0.026,
    ),
}  # fmt: skip


def _reshaped(unit: Floats, shape: LipShape) -> Floats:
    """The unit with these lips, the skin around them corrected by a part that falls with its distance."""
    wanted = _open(shape)
    places = {point: tuple(NEUTRAL[point, :2].astype(float).tolist()) for point in range(MESH_POINTS)}
    change = {point: (x - float(unit[point, 0]), y - float(unit[point, 1])) for point, (x, y) in wanted.items()}
    result = unit.copy()
    for point in range(MESH_POINTS):
        if point in wanted:
            result[point, :2] = wanted[point]
        if point in wanted or point in RIGID:  # which tell how the head moves
            continue
        x, y = places[point]
        near = {lip: 1 / ((x - places[lip][0]) ** 2 + (y - places[lip][1]) ** 2 + 0.03**2) ** 2 for lip in change}
        total = math.fsum(near.values()) + 1 / SKIN_FOLLOWS**4
        for axis in (0, 1):
            result[point, axis] += math.fsum(w * change[lip][axis] for lip, w in near.items()) / total
    return result


def undone_smile() -> Floats:
    """[478, 3] mouthSmile of both sides with lips that stay as far apart as they are, to take away from a smile."""
    smile = UNIT_OFFSETS[UNITS.index("mouthSmileLeft")] + UNIT_OFFSETS[UNITS.index("mouthSmileRight")]
    result = smile.copy()
    for column, (upper, lower) in enumerate(zip(UPPER_INNER, LOWER_INNER, strict=True)):
        middle = (smile[upper, 1] + smile[lower, 1]) * np.float32(0.5)
        for rows, edge in ((_UPPER, upper), (_LOWER, lower)):
            for row in rows:
                result[row[column], 1] += middle - smile[edge, 1]
    return result


def mouth_units() -> Floats:
    """[52, 478, 3] UNIT_OFFSETS with the lips of SHAPES."""
    units = UNIT_OFFSETS.copy()
    for name, shape in SHAPES.items():
        index = UNITS.index(name)
        units[index] = _reshaped(UNIT_OFFSETS[index], shape)
    return units
