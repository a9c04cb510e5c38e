"""Samples of the crop at pixel positions, as graph expressions."""

from __future__ import annotations

from .windows import SIZE
from .writer import Graph, Value


def sample(g: Graph, image: Value, x: Value, y: Value) -> Value:
    """[1, 3, h, w] linear samples of the crop at pixels x, y [h, w]."""
    grid = g.op("Concat", x.unsqueeze(2), y.unsqueeze(2), axis=2)
    grid = ((grid + 0.5) * (2 / SIZE) - 1).unsqueeze(0)
    return g.op("GridSample", image, grid, mode="linear", padding_mode="border", align_corners=0)
