"""Matrices of minimal filtering (Winograd's form of Toom-Cook), in exact fractions."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import cache

import numpy as np

# Points of evaluation by their number, besides infinity. The error of a result grows with the root of
# sum_a A[i,a]^2 |G[a]|^2 |B[a]|^2, which these make least among pairs of small fractions: for four outputs of
# three taps 2.2 an axis, where the usual 0, +-1, +-2 give 3.3 (Barabasz et al., 2020, arXiv 1803.10986, section 4).
POINTS: dict[int, tuple[Fraction, ...]] = {
    2: (Fraction(0), Fraction(1)),
    3: (Fraction(0), Fraction(1), Fraction(-1)),
    4: (Fraction(0), Fraction(5, 8), Fraction(-1), Fraction(7, 4)),
    5: (Fraction(0), Fraction(5, 8), Fraction(-5, 8), Fraction(25, 16), Fraction(-25, 16)),
}


@dataclass(frozen=True)
class Filtering:
    """`outputs` neighbouring results of a correlation with `taps` weights from `size` products.

    y = A ((G w) * (B x)) with w [taps], x [size], y [outputs] and size = outputs + taps - 1.
    """

    output: np.ndarray
    """A, [outputs, size]."""
    weight: np.ndarray
    """G, [size, taps]."""
    input: np.ndarray
    """B, [size, size]."""


@cache
def filtering(outputs: int, taps: int) -> Filtering:
    """The matrices for this many outputs and taps, float64.

    Raises:
        KeyError: `POINTS` knows none for outputs + taps - 2 points.
    """
    points = POINTS[outputs + taps - 2]
    size = len(points) + 1
    a = [[point**i for point in points] + [Fraction(int(i == outputs - 1))] for i in range(outputs)]
    scale = [_product(point - other for other in points if other != point) for point in points]
    g = [[point**i / scale[j] for i in range(taps)] for j, point in enumerate(points)]
    g.append([Fraction(int(i == taps - 1)) for i in range(taps)])
    b = [_with_roots([other for other in points if other != point], size) for point in points]
    b.append(_with_roots(points, size))
    return Filtering(*(np.array(matrix, dtype=np.float64) for matrix in (a, g, b)))


def _product(factors: Iterable[Fraction]) -> Fraction:
    result = Fraction(1)
    for factor in factors:
        result *= factor
    return result


def _with_roots(roots: Iterable[Fraction], size: int) -> list[Fraction]:
    """Coefficients, lowest first, of the monic polynomial with these roots."""
    coefficients = [Fraction(1)]
    for root in roots:
        shifted = [Fraction(0), *coefficients]
        coefficients = [high - root * low for high, low in zip(shifted, [*coefficients, Fraction(0)], strict=True)]
    return coefficients + [Fraction(0)] * (size - len(coefficients))
