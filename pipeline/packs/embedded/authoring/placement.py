"""Where things stand: cells and windows of the crop, and patches of the frame that follow a part of the face."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from .windows import SIZE, STEP, Window
from .writer import Graph, Value


def centres(g: Graph, window: Window) -> Value:
    """[1, height, width, 2] the cells' own positions, in units of a window counted in those cells."""
    x, y = np.zeros((1, 1, window.width, 2)), np.zeros((1, window.height, 1, 2))
    x[0, 0, :, 0] = (np.arange(window.width) * 2 + 1) / window.width - 1
    y[0, :, 0, 1] = (np.arange(window.height) * 2 + 1) / window.height - 1
    return g.constant(x) + g.constant(y)  # written small; runtimes fold it when they load the graph


def nodes(g: Graph, cells: Window, ring: int = 0) -> Value:
    """[1, 2, height, width] the same x and y of the cells' middles, of `ring` more cells around, too."""
    x, y = (np.arange(-ring, side + ring) * 2 + 1 for side in (cells.width, cells.height))
    columns, rows = np.zeros((1, 2, 1, len(x))), np.zeros((1, 2, len(y), 1))
    columns[0, 0, 0], rows[0, 1, :, 0] = x / cells.width - 1, y / cells.height - 1
    return g.constant(columns) + g.constant(rows)


def extent(window: Window) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
    """Centre and half size [2] (x, y) of a window of the crop in crop units."""
    half = np.array([window.width, window.height], np.float32) / np.float32(SIZE)
    corner = np.array([window.left, window.top], np.float32) / np.float32(SIZE / 2) - np.float32(1)
    return corner + half, half


@dataclass(frozen=True)
class Patch:
    """A rectangle of the frame that follows a part of the face: whole cells of the warp, always inside SLITS."""

    rows: int
    columns: int
    """How many cells."""
    cells: Value
    """int64 [2] row and column of its first cell, counted from the corner of SLITS."""
    step: int
    """Pixels of the frame across a cell."""
    start: Value
    """int64 [2] row and column of its corner, in pixels counted from the same."""

    @property
    def height(self) -> int:
        return self.rows * self.step

    @property
    def width(self) -> int:
        return self.columns * self.step

    @property
    def size(self) -> npt.NDArray[np.int64]:
        return np.array([self.height, self.width])

    def part(self, window: Window) -> Patch:
        """A part of the patch, in pixels of the full crop counted from its corner."""
        cells = window.over(STEP)
        offset = np.array([cells.top, cells.left])
        return Patch(cells.height, cells.width, self.cells + offset, self.step, self.start + offset * self.step)
