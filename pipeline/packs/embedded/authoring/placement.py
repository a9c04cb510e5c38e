"""Where things stand: cells and windows of the crop, and patches of the frame that follow a part of the face."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from .windows import SIZE, Window
from .writer import Graph, Value


def centres(g: Graph, window: Window) -> Value:
    """[1, height, width, 2] the cells' own positions, in units of a window counted in those cells."""
    x, y = np.zeros((1, 1, window.width, 2)), np.zeros((1, window.height, 1, 2))
    x[0, 0, :, 0] = (np.arange(window.width) * 2 + 1) / window.width - 1
    y[0, :, 0, 1] = (np.arange(window.height) * 2 + 1) / window.height - 1
    return g.constant(x) + g.constant(y)  # written small; runtimes fold it when they load the graph


def extent(window: Window) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
    """Centre and half size [2] (x, y) of a window of the crop in crop units."""
    half = np.array([window.width, window.height], np.float32) / np.float32(SIZE)
    corner = np.array([window.left, window.top], np.float32) / np.float32(SIZE / 2) - np.float32(1)
    return corner + half, half


@dataclass(frozen=True)
class Patch:
    """A rectangle of the frame that follows a part of the face, always inside SLITS."""

    height: int
    width: int
    start: Value
    """int64 [2] row and column of its corner, counted from that of SLITS."""

    @property
    def size(self) -> npt.NDArray[np.int64]:
        return np.array([self.height, self.width])
