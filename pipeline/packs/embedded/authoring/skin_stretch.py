"""Skin between lips that move and a face that does not: stretched as evenly as it can be."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cache

import numpy as np
import numpy.typing as npt

from .anatomy import FACE_OUTLINE, MESH_POINTS, NEUTRAL, RIGID

Floats = npt.NDArray[np.float32]
Move = tuple[float, float, float]

REACH = 0.35
"""Decimetres from the lips up to which skin goes along: from the chin to the wings of the nose."""

NEIGHBOURS, SOFTENING = 10, 0.01
"""How many points hold each one, by 1 / (distance^2 + SOFTENING^2)."""

STIFF_FOR = 0.02
"""Decimetres: skin is as stiff as 1 / (distance from the lips + STIFF_FOR): it goes with them, gives further out."""

SWEEPS, RELAXATION = 80, 1.7
"""Of Gauss and Seidel's iteration, over-relaxed (Young 1954): after them nothing changes by a 1000th of a motion."""


@cache
def _neighbours() -> list[dict[int, float]]:
    """Of each point of the mesh, its neighbours on the average face and their weights."""
    places = NEUTRAL[:MESH_POINTS, :2].astype(float).tolist()
    found: list[dict[int, float]] = [{} for _ in places]
    for i, (x, y) in enumerate(places):
        squares = sorted(((u - x) ** 2 + (v - y) ** 2, j) for j, (u, v) in enumerate(places) if j != i)
        for square, j in squares[:NEIGHBOURS]:
            found[i][j] = found[j][i] = 1 / (square + SOFTENING**2)
    return found


def stretched(unit: Floats, lips: Mapping[int, Move], evenness: float) -> Floats:
    """A unit [478, 3] with lips that move by `lips`, and the skin around them as a membrane between them and the rest.

    The membrane has least energy (each point is the weighted mean of its neighbours): of its motion, with an `evenness`
    of 1, or of what it moves otherwise than in the unit, with 0, so that the unit's own folds stay. Skin that is
    pressed together more in one place than around it is the first to turn over in a face whose chin is short. Points of
    FACE_OUTLINE keep their own x.

    In plain floats, one after the other, so that the last bit is the same on every machine.
    """
    places = NEUTRAL[:MESH_POINTS, :2].astype(float).tolist()
    away = [math.sqrt(min((x - places[lip][0]) ** 2 + (y - places[lip][1]) ** 2 for lip in lips)) for x, y in places]
    stiff = [1 / (distance + STIFF_FOR) for distance in away]
    free: dict[int, list[tuple[int, float]]] = {}
    for point, near in enumerate(_neighbours()):
        if point not in RIGID and 0 < away[point] < REACH:  # rigid points tell how the head moves
            weights = {other: weight * (stiff[point] + stiff[other]) for other, weight in near.items()}
            total = sum(weights.values())
            free[point] = [(other, weight / total) for other, weight in weights.items()]

    result = unit.copy()
    for axis in range(3):
        measured = unit[:MESH_POINTS, axis].astype(float).tolist()
        own, change = ([value * share for value in measured] for share in (1 - evenness, evenness))
        for lip, move in lips.items():
            change[lip] = move[axis] - own[lip]
        for _ in range(SWEEPS):
            for point, held in free.items():
                if axis == 0 and point in FACE_OUTLINE:  # a chin may drop, but a face becomes no narrower
                    continue
                mean = sum(weight * change[other] for other, weight in held)
                change[point] += (mean - change[point]) * RELAXATION
        result[:MESH_POINTS, axis] = [kept + value for kept, value in zip(own, change, strict=True)]
    return result
