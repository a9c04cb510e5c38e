"""The dark of the folds from the nose to the corners of the mouth, deepest in a smile.

Where the lips draw together, the skin of a fold is pressed into a thin dark line, which a face does not
show: a fold opens as its smile goes. So its dark is taken out by how far the corners come in. Lengths are
pixels of 512.
"""

from __future__ import annotations

from itertools import pairwise

from .anatomy import FOLDS
from .regions import MouthRegion
from .windows import MOUTH
from .writer import Graph, Value

POOL = 2
"""Folds are wide: every second pixel tells enough."""

WIDEST = 11
"""Pixels of the pooled window: what is dark over less than that, with lighter skin on both sides, is a fold."""

REACH = (0.10, 0.17)
"""Distance from a fold's line, in widths of the mouth, up to which all of its dark counts, and from which none does."""

ABOVE = 8.0
"""Height over the upper lip's edge from which all of the dark counts: below that edge another layer begins."""

TAKEN = 0.5
"""Part of the dark that can be taken out."""

AROUND, LIGHTER = 3, 0.05
"""Side, pooled pixels, of what is around a place, and how much lighter than its lightest the place may become: a wide
dark valley has no light of its own to take, and would turn into a stain."""


def fold_darkness(g: Graph, image: Value, points: Value, mouth: MouthRegion) -> Value:
    """[1, 1, MOUTH / POOL] 0..1: what all channels lack in the folds of the portrait.

    `image` [1, 3, 512, 512] RGB 0..1; `points` [478, 3] its landmarks, pixels.
    """
    here = image[:, :, MOUTH.top : MOUTH.bottom, MOUTH.left : MOUTH.right]
    bright = here.mean(1, keep=True)
    bright = g.op("AveragePool", bright, kernel_shape=[POOL, POOL], strides=[POOL, POOL])
    missing = (-_highest(-_highest(bright, WIDEST), WIDEST) - bright).clip(0, None)
    x, y = g.constant(MOUTH.columns()[:, ::POOL] + (POOL - 1) / 2), g.constant(MOUTH.rows()[::POOL] + (POOL - 1) / 2)
    near: Value | None = None
    for fold in FOLDS:
        for start, end in pairwise(fold):
            distance = _distance(x, y, points[start, 0:2], points[end, 0:2])
            near = distance if near is None else g.minimum(near, distance)
    assert near is not None
    begin, far = REACH
    inside = 1 - g.smoothstep((near / mouth.width - begin) / (far - begin))
    u, v = mouth.frame.local(x, y)
    above = g.smoothstep((mouth.upper_edge(u) - v) / ABOVE)
    room = (_highest(bright, AROUND) - bright) + LIGHTER
    return g.minimum(missing * TAKEN, room) * inside * above


def _highest(image: Value, side: int) -> Value:
    return image.graph.op("MaxPool", image, kernel_shape=[side, side], strides=[1, 1], pads=[side // 2] * 4)


def _distance(x: Value, y: Value, start: Value, end: Value) -> Value:
    """[h, w] from the line between two points [2]."""
    along = end - start
    length = (along * along).sum(0) + 1e-3
    dx, dy = x - start[0], y - start[1]
    part = ((dx * along[0] + dy * along[1]) / length).clip(0, 1)
    ox, oy = dx - part * along[0], dy - part * along[1]
    return (ox * ox + oy * oy + 1e-6).sqrt()
