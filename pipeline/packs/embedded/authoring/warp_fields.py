"""Forward fields: how far each node of the portrait moves in a frame."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from .warp_weights import OF_COMMON, OF_RIGID
from .windows import COARSE_STEP, CROP, SLITS, STEP, Window
from .writer import Graph, Value

FARTHEST = 4.0
"""Displacements beyond this are cut, so that all stays finite."""

FINE_FROM = 5
"""Nodes over which the fine field takes the place of the coarse one at the border of SLITS."""


def field(moved: Value, cells: Window) -> Value:
    """[1, 2, h, w] displacement of each node, kept finite, from [h * w, 2]."""
    moved = moved.clip(-FARTHEST, FARTHEST)
    return moved.reshape(1, cells.height, cells.width, 2).transpose(0, 3, 1, 2)


def kept_in_steps(weights: Value) -> tuple[Value, Value]:
    """Weights [n, m] as whole steps 0..255 in 255ths, 128 for zero, and what a step of each column is, [1, m]."""
    steps = weights.abs().max(0, keep=True) * (1 / 127) + 1e-12
    return (weights / steps + 128) * (1 / 255), steps


def in_steps(levels: Value, steps: Value, factors: Value) -> Value:
    """[n, 2] weights that are kept in steps 0..255 @ factors [m, 2]."""
    factors = factors * steps.reshape(-1, 1)
    return levels @ factors - factors.sum(0) * 128


def enlarged(values: Value, cells: Window) -> Value:
    """[1, 2, h, w] a field on fewer nodes, at these."""
    shape = np.array([1, 2, cells.height, cells.width])
    return values.graph.op("Resize", values, "", "", shape, mode="linear", coordinate_transformation_mode="half_pixel")


def head_fields(g: Graph, tensors: dict[str, Value], factors: Value) -> tuple[Value, Value]:
    """Displacements of the head layer in crop units: [1, 2, 64, 64] the coarse ones, and [1, 2, 128, 128] these with
    the fine ones in SLITS."""
    expressed = in_steps(tensors["crop_weights"], tensors["crop_steps"], factors[OF_RIGID:OF_COMMON])
    coarse = field(tensors["crop_rigid"] @ factors[:OF_RIGID] + expressed, CROP.over(COARSE_STEP))
    nodes, slits = CROP.over(STEP), SLITS.over(STEP)
    between = enlarged(coarse, nodes)
    fine = field(tensors["head_weights"] @ factors, slits)
    change = (fine - between[:, :, slits.top : slits.bottom, slits.left : slits.right]) * _inner_share(slits)
    top, left, bottom, right = slits.margins(nodes)
    return coarse, between + g.op("Pad", change, np.array([0, 0, top, left, 0, 0, bottom, right]))


def _inner_share(cells: Window) -> npt.NDArray[np.float32]:
    """[1, 1, h, w] 0 just outside the window, 1 from FINE_FROM nodes inside of its border on."""

    def ramp(count: int) -> npt.NDArray[np.float32]:
        from_edge = np.minimum(np.arange(1, count + 1), np.arange(count, 0, -1))
        return np.minimum(from_edge / FINE_FROM, 1).astype(np.float32)

    return (ramp(cells.height)[:, None] * ramp(cells.width))[None, None]
