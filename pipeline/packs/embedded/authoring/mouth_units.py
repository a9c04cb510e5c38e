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
from .tongue import tongue_unit

Floats = npt.NDArray[np.float32]

_S = [0.82, 0.67, 0.45, 0.22, 0.0, 0.22, 0.45, 0.67, 0.82]
"""s of the nine columns of the lips."""

# Heights over those columns, 1 at the middle (the ellipse is drawn in at its ends, where skin would be torn
# otherwise); as numbers, for powers may differ in the last bit between machines.
ELLIPSE = [0.50, 0.71, 0.88, 0.97, 1.0, 0.97, 0.88, 0.71, 0.50]
SUPPLE = [0.39, 0.61, 0.83, 0.96, 1.0, 0.96, 0.83, 0.61, 0.39]
PARABOLA = [0.33, 0.55, 0.80, 0.95, 1.0, 0.95, 0.80, 0.55, 0.33]

_CORNERS = [*MOUTH_CORNERS, *OUTER_MOUTH_CORNERS]
_UPPER, _LOWER = [UPPER_INNER, *UPPER_LIP_ROWS], [LOWER_INNER, *LOWER_LIP_ROWS]
DEPTH = 0.5
"""Share that is left of how much further than the corners the middle of a lip moves forwards or back: in a head seen
from the side all of it would tear the corners."""

SKIN_FOLLOWS = 0.10
"""Distance from the lips at which skin makes half of their correction."""


BELOW_FOLLOWS = 0.10
"""Distance below the lower lip at which skin goes half-way with the lip: else its edge would pass over the skin."""


BELOW_ENDS = (0.6, 1.2)
"""Distance aside from the middle, in those of the mouth's corners, up to which it does so, and from where on not."""


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


def _open(shape: LipShape, unit: Floats) -> dict[int, tuple[float, float, float]]:
    """(x, y, z) of every point of the lips; depths as the measured unit has them in the middle and at the corners."""
    moves: dict[int, tuple[float, float, float]] = {}
    back = math.fsum(unit[_CORNERS, 2].astype(float).tolist()) / len(_CORNERS)
    for rows, middles, towards in ((_UPPER, shape.upper, 1.0), (_LOWER, shape.lower, -1.0)):
        for depth, (row, middle) in enumerate(zip(rows, middles, strict=True)):
            for column, (point, s, height) in enumerate(zip(row, _S, shape.outline, strict=True)):
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
        upper=[0.002, 0.006, 0.010, 0.014], lower=[0.339, 0.341, 0.339, 0.334], corner=0.125, inwards=0.028,
        outline=SUPPLE,
    ),
    "mouthFunnel": LipShape(
        upper=[-0.050, -0.056, -0.057, -0.054], lower=[0.084, 0.092, 0.092, 0.088], corner=0.014, inwards=0.036,
        outline=SUPPLE,
    ),
    "mouthPucker": LipShape(
        upper=[-0.004, -0.012, -0.021, -0.025], lower=[-0.003, 0.006, 0.018, 0.022], corner=0.004, inwards=0.068,
        outline=PARABOLA, zipped=0.026,
    ),
}  # fmt: skip


def _reshaped(unit: Floats, shape: LipShape) -> Floats:
    """The unit with these lips, the skin around them corrected by a part that falls with its distance."""
    wanted = _open(shape, unit)
    places = {point: tuple(NEUTRAL[point, :2].astype(float).tolist()) for point in range(MESH_POINTS)}
    change = {p: [new - float(old) for new, old in zip(wanted[p], unit[p], strict=True)] for p in wanted}
    result = unit.copy()
    begin, end = BELOW_ENDS
    for point in range(MESH_POINTS):
        if point in wanted:
            result[point] = wanted[point]
        if point in wanted or point in RIGID:  # which tell how the head moves
            continue
        x, y = places[point]
        near = {lip: 1 / ((x - places[lip][0]) ** 2 + (y - places[lip][1]) ** 2 + 0.03**2) ** 2 for lip in change}
        total = math.fsum(near.values()) + 1 / SKIN_FOLLOWS**4
        for axis in range(3):
            result[point, axis] += math.fsum(w * change[lip][axis] for lip, w in near.items()) / total
        _, height, lip = min((abs(x - places[lip][0]), places[lip][1], lip) for lip in _LOWER[-1])
        aside = abs(x) / places[_CORNERS[3]][0]
        if y > height and aside < end:
            share = min(1.0, (end - aside) / (end - begin)) / (1 + ((y - height) / BELOW_FOLLOWS) ** 2)
            result[point, 1] += share * (wanted[lip][1] - float(result[point, 1]))
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
    """[52, 478, 3] UNIT_OFFSETS with the lips of SHAPES, and a tongue."""
    units = UNIT_OFFSETS.copy()
    units[UNITS.index("tongueOut")] = tongue_unit()
    for name, shape in SHAPES.items():
        index = UNITS.index(name)
        units[index] = _reshaped(UNIT_OFFSETS[index], shape)
    return units
