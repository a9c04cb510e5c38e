"""The background carried on behind the person: smooth colours, and the grain of what is seen of it."""

from __future__ import annotations

import numpy as np

from .sampling import pool
from .windows import SIZE
from .writer import Graph, Value

HALF = SIZE // 2
"""Side of the coverage, and of the picture that the segmenter takes."""

LEVELS = 9
"""Halvings over which colours spread behind the person; the last one is a pixel: the mean of all that is shown."""

FINE, COARSE = 1, 3
"""The finest level that is kept of colours, and of what tells how they vary: cells of 2 and of 8 pixels."""

TILE = 128
"""Side of the piece of grain that is repeated behind the person."""

PIECES = (0, 117, 239, 378)
"""Rows and columns where the pieces begin that are laid over each other."""

GRAIN_RADIUS = 4
"""Grain is what differs from the mean of a square of so many pixels about each pixel."""

EVEN_REACH = 2
"""Cells of 8 pixels about a place among which the most even one tells the strength of its grain."""

EVENNESS = 1.5
"""How much more the variance of noise is than the least that so many cells show."""

MOST_GRAIN = 1.5
"""How much more the variance of grain may be than it is on the average: noise is everywhere, what is on a wall not."""

NO_GRAIN = (9.0, 16.0)
"""Squares, in variances of the grain, from which a pixel belongs to a line or an edge, by and by."""

LEAST_GRAIN = 4e-6
"""Variance, sum over the channels, 0..1, below which there is no grain to speak of."""


def enlarged_to(image: Value, channels: int, side: int = SIZE) -> Value:
    """[1, channels, side, side] from fewer pixels."""
    shape = np.array([1, channels, side, side])
    return image.graph.op("Resize", image, "", "", shape, mode="linear", coordinate_transformation_mode="half_pixel")


def rounded(value: Value) -> Value:
    """0..1, in 255ths."""
    return value.graph.op("Round", value.clip(0, 1) * 255) * (1 / 255)


def mean(image: Value, radius: int) -> Value:
    """Means of squares about each pixel, of those of their pixels that are in the image: of rows, then of columns."""
    side = 2 * radius + 1
    rows = image.op("AveragePool", kernel_shape=[1, side], pads=[0, radius, 0, radius])
    return rows.op("AveragePool", kernel_shape=[side, 1], pads=[radius, 0, radius, 0])


def spread(g: Graph, image: Value, channels: int, hidden: Value, finest: int) -> Value:
    """[1, channels, 512, 512] the colours of what is not hidden, carried on over all the rest: pulled up a pyramid and
    pushed down to where it has none (Gortler et al., "The Lumigraph", 1996)."""
    shown = 1 - hidden
    levels = [(image * shown, shown)]
    for _ in range(LEVELS):
        levels.append((pool(levels[-1][0], 2), pool(levels[-1][1], 2)))
    colours = None
    for level in range(LEVELS, finest - 1, -1):
        here, weight = levels[level]
        here = here / (weight + 1e-7)
        if colours is not None:
            here = colours + (here - colours) * (weight * 2).clip(0, 1)
        colours = enlarged_to(here, channels, SIZE >> (level - 1 if level > finest else 0))
    assert colours is not None
    return colours


def grain(g: Graph, image: Value, hidden: Value) -> Value:
    """[1, 3, 512, 512] grain like that of what is not hidden, for all of the picture.

    The sum of n pieces of noise, over the root of n, is noise of the same strength and spectrum: pieces of the picture
    are laid over each other, each pixel with a variance of 1, and what comes out is given the variance that the
    background has where it is most even. Lines and edges are no grain and are left out.
    """
    shown = 1 - hidden
    sums = mean(g.concat([image * shown, shown], axis=1), GRAIN_RADIUS)
    fine = (image - sums[:, 0:3] / (sums[:, 3:4] + 1e-4)) * shown
    energy = (fine * fine).sum(1, keep=True)
    strength = _least_around(g, energy, shown)
    low, high = NO_GRAIN
    shown = shown * (1 - g.smoothstep((energy / strength - low) / (high - low)))
    pile, count = _piled(g, fine * shown / strength.sqrt(), shown)
    tile = pile / (count + 0.1).sqrt()
    tile = tile / ((tile * tile).sum(1, keep=True).mean(2, 3, keep=True) + 1e-4).sqrt()
    across = g.concat([tile] * -(-SIZE // TILE), axis=3)
    return g.concat([across] * -(-SIZE // TILE), axis=2) * strength.sqrt()


def _least_around(g: Graph, energy: Value, shown: Value) -> Value:
    """[1, 1, 512, 512] the variance of the most even place about each place, carried on over what is hidden."""
    cells = pool(pool(pool(g.concat([energy, shown], axis=1), 2), 2), 2)
    known = (cells[:, 1:2] > 0.6).cast()
    variance = cells[:, 0:1] / (cells[:, 1:2] + 1e-4) * known + (1 - known)
    side = 2 * EVEN_REACH + 1
    pooled = {"kernel_shape": [side, side], "pads": [EVEN_REACH] * 4, "strides": [1, 1]}
    known, least = g.op("MaxPool", known, **pooled), -g.op("MaxPool", -variance, **pooled)
    parts = enlarged_to(g.concat([least * known, known], axis=1), 2)
    usual = (least * known).mean(2, 3, keep=True) / (known.mean(2, 3, keep=True) + 1e-4)
    least = spread(g, parts[:, 0:1] / (parts[:, 1:2] + 1e-4), 1, 1 - parts[:, 1:2], COARSE)
    return g.minimum(least, usual * MOST_GRAIN) * EVENNESS + LEAST_GRAIN


def _piled(g: Graph, even: Value, shown: Value) -> tuple[Value, Value]:
    """[1, 3, TILE, TILE] and [1, 1, TILE, TILE] the sums of pieces of grain and of how much of it is shown.

    Every other piece counts negative and none stands at a multiple of 8 pixels from another: blocks of a JPEG do not
    add up.
    """
    found, counted = even[:, :, :TILE, :TILE], shown[:, :, :TILE, :TILE]
    for index, (y, x) in enumerate([(y, x) for y in PIECES for x in PIECES][1:], 1):
        here = np.s_[:, :, y : y + TILE, x : x + TILE]
        found = found - even[here] if index % 2 else found + even[here]
        counted = counted + shown[here]
    return found, counted
