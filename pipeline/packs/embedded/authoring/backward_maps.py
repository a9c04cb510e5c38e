"""Backward maps: where in the portrait each pixel of a frame comes from.

They are solved on nodes, which stand at the centres of STEP x STEP cells, and kept as source positions
[1, 2, height + 2, width + 2] with a ring of nodes around, so that each pixel of a cell lies between nodes.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from .motion_basis import OF_LOWER
from .placement import Patch, extent, nodes
from .sampling import linear
from .warp_fields import enlarged, field, head_fields, in_steps
from .warp_weights import OF_RIGID, in_mouth
from .windows import COARSE_STEP, CROP, MOUTH, SIZE, SLITS, STEP, Window
from .writer import Graph, Value

RELAXATION = 0.75
"""Of the fixed-point iteration; below 1 because stretched skin moves by more than 1:1."""

LAST_RELAXATION = 0.5
"""The same in the last step: where places swing about their end, this is near its middle."""

COARSE_STEPS, FINE_STEPS, JAW_STEPS = 4, 3, 6
"""Steps of the iteration for the head on the coarse nodes, then on the fine ones, and for the jaw, which begins where
the head's ended. Against 100 steps each, on four faces: 58 dB and more with open lips, 82 dB with closed ones."""


def solved(forward: Value, here: Value, start: Value, steps: int, side: int) -> Value:
    """[1, 2, h, w] positions p with p + forward(p) = here, in units of the window that `forward` covers.

    Args:
        forward: [1, 2, H, W] displacements; carried on beyond their border.
        here: [1, 2, h, w] places in the frame. start: guesses of their sources, alike.
        steps: of a relaxed fixed-point iteration.
        side: the shorter one of H and W.
    """
    places = start
    for relaxation in [RELAXATION] * (steps - 1) + [LAST_RELAXATION]:
        moved = linear(forward, places.transpose(0, 2, 3, 1), side)
        places = places * (1 - relaxation) + (here - moved) * relaxation
    return places


def head_map(g: Graph, tensors: dict[str, Value], factors: Value) -> Value:
    """[1, 2, 130, 130] crop units: where the head layer's nodes come from."""
    coarse, fine = CROP.over(COARSE_STEP), CROP.over(STEP)
    of_coarse, of_fine = head_fields(g, tensors, factors)
    here = nodes(g, coarse)
    places = solved(of_coarse, here, here - of_coarse * 0.7, COARSE_STEPS, coarse.height)
    here, back = nodes(g, fine), enlarged(places - here, fine)
    back = solved(of_fine, here, here + back, FINE_STEPS, fine.height) - here
    return nodes(g, fine, ring=1) + g.op("Pad", back, np.array([0, 0, 1, 1, 0, 0, 1, 1]), mode="edge")


def jaw_map(g: Graph, tensors: dict[str, Value], factors: Value, head: Value, patch: Patch) -> Value:
    """[1, 2, h + 2, w + 2] in units of MOUTH: where the nodes of the mouth's patch come from on the jaw layer.

    `head`: the same of the head layer, from which it differs little.
    """
    centre, half = extent(MOUTH)
    factors = factors / half
    expressed = g.concat([factors[:OF_LOWER], factors[OF_LOWER + OF_RIGID :]], axis=0)
    with_head = in_mouth(tensors["head_weights"][:, :OF_RIGID], OF_RIGID) @ factors[OF_LOWER : OF_LOWER + OF_RIGID]
    moved = with_head + in_steps(tensors["jaw_weights"], tensors["jaw_steps"], expressed)
    forward = field(moved, MOUTH.over(STEP))
    corner, reach = extent(Window(SLITS.top, SLITS.left, patch.rows * STEP, patch.columns * STEP))
    moved = patch.cells.take([1, 0]).cast() * (2 * STEP / SIZE / half) + (corner - centre) / half
    around = nodes(g, Window(0, 0, patch.rows, patch.columns), ring=1) * (reach / half).reshape(1, 2, 1, 1)
    return solved(forward, around + moved.reshape(1, 2, 1, 1), head, JAW_STEPS, MOUTH.height // STEP)


def cut(head: Value, patch: Patch) -> Value:
    """[1, 2, h + 2, w + 2] the part of the head's map in a patch, still in crop units."""
    slits, size = SLITS.over(STEP), [patch.rows + 2, patch.columns + 2]
    start = patch.cells + np.array([slits.top, slits.left])
    part = head.graph.op("Slice", head, start, start + np.array(size), np.array([2, 3]))
    return part.reshape(1, 2, *size)


def in_units(places: Value, window: Window) -> Value:
    """Positions [n, 2, h, w] in crop units, in units of a window."""
    centre, half = (each.reshape(1, 2, 1, 1) for each in extent(window))
    return (places - centre) / half


def at_pixels(places: Value, patch: Patch) -> Value:
    """[n, h, w, 2] maps [n, 2, rows + 2, columns + 2] at the pixels of a patch, as GridSample wants them."""
    rows = across(places, patch.rows + 2, patch.columns, patch.step)
    return down(rows, patch.rows, patch.step).reshape(-1, patch.height, patch.width, 2)


def across(places: Value, rows: int, cells: int, step: int) -> Value:
    """[n, rows, cells * step * 2] a map [n, 2, rows, cells + 2] at the pixels across its cells: x, y, x, y, ..."""
    kernel = np.zeros((3, 2, step, 2), np.float32)
    for axis in range(2):
        kernel[:, axis, :, axis] = _shares(step).T
    near = places.transpose(0, 2, 3, 1)
    three = places.graph.concat([near[:, :, i : cells + i] for i in range(3)], axis=3)
    return (three.reshape(-1, 6) @ kernel.reshape(6, 2 * step)).reshape(-1, rows, cells * step * 2)


def down(rows: Value, cells: int, step: int) -> Value:
    """[n, cells * step, w] what stands in rows of nodes [n, cells + 2, w], at the pixels down their cells."""
    matrix = np.zeros((cells, step, cells + 2), np.float32)
    for cell in range(cells):
        matrix[cell, :, cell : cell + 3] = _shares(step)
    return matrix.reshape(cells * step, cells + 2) @ rows


def _shares(step: int) -> npt.NDArray[np.float32]:
    """[step, 3] of the node before, at and after a cell in each of its pixels."""
    offset = (np.arange(step) + 0.5) / step - 0.5
    return np.stack([np.maximum(-offset, 0), 1 - np.abs(offset), np.maximum(offset, 0)], 1).astype(np.float32)
