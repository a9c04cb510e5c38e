"""How far a mouth is open in the portrait (LivePortrait's lip ratio)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..packs.section import Section
from ..values import F32


@dataclass(frozen=True)
class LipSpec:
    """When a portrait's mouth counts as open.

    `inner`: landmark numbers of the middles of the upper and the lower lip's inner edge. `corners`: of the mouth.
    `open_from`: lip ratio from which the mouth is open.
    """

    inner: tuple[int, int]
    corners: tuple[int, int]
    open_from: float

    @classmethod
    def read(cls, section: Section) -> LipSpec:
        """Raises PackError: a field is missing or of the wrong kind."""

        def pair(name: str) -> tuple[int, int]:
            numbers = section.integers(name)
            if len(numbers) != 2:
                raise section.fail(name, "two landmark numbers")
            return numbers[0], numbers[1]

        return cls(pair("inner"), pair("corners"), section.number("open_from"))


def lip_ratio(landmarks: F32, spec: LipSpec) -> float:
    """Distance of the inner lips' middles over the distance of the mouth's corners; 0 = closed.

    Args:
        landmarks: [478, 2 or 3], in any unit that is the same in x and y.
    """
    gap, width = (
        np.hypot(*(landmarks[first, :2] - landmarks[second, :2])) for first, second in (spec.inner, spec.corners)
    )
    return float(gap / width)
