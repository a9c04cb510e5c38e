"""Keeps lips from crossing, whatever the driving keypoints ask for (lids: eye_patches.py)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from .anatomy import (
    EYES,
    LOWER_INNER,
    LOWER_LIP_ROWS,
    UPPER_INNER,
    UPPER_LIP_ROWS,
    scatter,
)  # fmt: skip
from .writer import Graph, Value

MARGIN = 1 / 256
"""Below this gap (crop units; 1 pixel of 512) an approach is slowed down and never passes zero."""


@dataclass(frozen=True)
class Guard:
    """Pairs of points that may touch but not pass, and who gives way."""

    upper: list[int]
    lower: list[int]
    upper_weights: list[dict[int, float]]
    """For each pair, how much of a correction the points above take (they move up)."""
    lower_weights: list[dict[int, float]]
    """The same for the points below (they move down)."""

    def corrections(self) -> npt.NDArray[np.float32]:
        """[478, pairs] displacement along the face's downward axis for a correction of 1."""
        return scatter(self.lower_weights) - scatter(self.upper_weights)

    def gaps(self, points: Value, down: Value) -> Value:
        """[pairs, 1] signed distances of the pairs along `down` [1, 2]."""
        return ((points.take(self.lower) - points.take(self.upper)) * down).sum(1, keep=True)


def _columns(share: float, edge: list[int], rows: list[list[int]], fall: list[float]) -> list[dict[int, float]]:
    """Weights for each point of an edge: `share` for the edge itself, falling over the rows beyond it."""
    return [
        {point: share, **{row[i]: share * f for row, f in zip(rows, fall, strict=True)}} for i, point in enumerate(edge)
    ]


LIP_GUARD = Guard(
    upper=UPPER_INNER,
    lower=LOWER_INNER,
    upper_weights=_columns(0.5, UPPER_INNER, UPPER_LIP_ROWS, [0.95, 0.8, 0.6]),
    lower_weights=_columns(0.5, LOWER_INNER, LOWER_LIP_ROWS, [0.95, 0.8, 0.6]),
)


def downward(points: Value) -> Value:
    """[1, 2] unit vector down the face: square to the line through the outer corners of the eyes."""
    across = points[EYES[1].corners[1]] - points[EYES[0].corners[0]]
    length = ((across * across).sum(0) + 1e-6).sqrt()
    down = across.graph.concat([-across[1:2], across[0:1]], axis=0)
    return (down / length).reshape(1, 2)


def guarded(g: Graph, source: Value, driving: Value) -> Value:
    """Driving points [478, 2] with every pair kept apart; equal to `source` where driving is.

    A gap s below `floor + MARGIN` becomes floor + MARGIN * exp((s - floor) / MARGIN - 1), which joins
    with equal slope and tends to `floor`: zero, or just under the portrait's own gap where its lips
    already touch (so that the photo itself is never corrected).
    """
    source_down, down = downward(source), downward(driving)
    floor = (LIP_GUARD.gaps(source, source_down) - MARGIN).clip(None, 0)
    above_floor = LIP_GUARD.gaps(driving, down) - floor
    short = (above_floor / MARGIN - 1).clip(-60, 0)
    kept = short.exp() * MARGIN
    correction = g.where(above_floor < MARGIN, kept - above_floor, 0.0)
    return driving + (g.constant(LIP_GUARD.corrections()) @ correction) * down
