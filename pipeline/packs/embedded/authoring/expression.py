"""Expression coefficients as sequences in time: what lips, eyes and brows of the denoiser share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from .anatomy import UNITS
from .writer import Graph, Value


def both(name: str, value: float) -> dict[str, float]:
    """The same coefficient on both sides of the face."""
    return {f"{name}Left": value, f"{name}Right": value}


def coefficients(rows: Iterable[Mapping[str, float]]) -> npt.NDArray[np.float32]:
    """Named coefficients as a [rows, 52] table, columns in the order of the expression basis."""
    rows = list(rows)
    table = np.zeros((len(rows), len(UNITS)), np.float32)
    for i, row in enumerate(rows):
        for name, value in row.items():
            table[i, UNITS.index(name)] = value
    return table


def smoothed(g: Graph, value: Value, kernel: Sequence[float]) -> Value:
    """[2, N, C] -> the same, each column smoothed over time; the ends are held."""
    half = len(kernel) // 2
    held = g.op("Pad", value, np.array([0, half, 0, 0, half, 0], np.int64), mode="edge")
    parts = [held[:, i : i + 1 - len(kernel) or None] * float(weight) for i, weight in enumerate(kernel)]
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total
