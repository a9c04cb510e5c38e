"""The folds from the nose to beside the corners of the mouth, deepest in a smile.

Where the lips draw together, the skin of a fold is pressed into a thin dark line, which a face does not
show: a fold opens as its smile goes. So by how much the corners come in, its valley, and the ridge beside it,
make room for skin as it is on both sides. Lengths are pixels of 512.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from .anatomy import FACE_OUTLINE, FOLDS, LOWER_LIP_ROWS, OUTER_MOUTH_CORNERS, UPPER_LIP_ROWS
from .regions import MouthRegion, polyline
from .sampling import highest, pool
from .windows import MOUTH
from .writer import Graph, Value

POOL = 2
"""Folds are wide: every second pixel tells enough."""

WIDEST = 13
"""Pixels of the pooled window: what is darker, or lighter, than both sides over less than that is a fold's."""

UNLIKE = (0.006, 0.03)
"""How unlike both sides it is when it begins to be taken for a fold, and from which on it is one for sure."""

ROUGH = (0.013, 0.019)
"""Mean detail of skin, grain and stubble at most, and of hair at least: what the pooled pixels do not tell."""

HAIR_AROUND = 11
"""Side, pooled pixels, of the window over which detail is evened out, and by which hair keeps its surroundings."""

BAND = (0.09, 0.15)
"""Distance from a fold's line, in widths of the mouth, up to which all of it goes, and from which nothing does."""

BESIDE_NOSE = 0.4
"""Part of the way to its second point that is left of a fold: the wing of the nose casts its shadow there."""

SIDES = (0.05, 0.10)
"""The same, from which skin begins to tell how both sides are, and from which all of it does."""

AROUND = 15
"""Side, pooled pixels, of the window of the means, taken twice, with which the fill begins."""

SWEEPS, STEP = 12, 7
"""Of the membrane's relaxation, and the side of its window, pooled pixels."""

NEAR, LIGHTER = 5, 0.045
"""Side, pooled pixels, of what is around a place, and how much lighter than its lightest the place may become: what is
dark over more than that is a shadow, and would turn into a stain."""

DARKER = 0.06
"""How much darker a ridge may become: some of its light is shine, which stays when the ridge goes."""

SHARPENED = 1
"""How often what enlarging softens is made up for."""

OFF = 4.0
"""Distance from lips, and from the outline of the face, over which skin is mixed with their colours."""


def fold_fill(g: Graph, image: Value, points: Value, mouth: MouthRegion) -> Value:
    """[1, 3, MOUTH / POOL] -1..1: what flat skin has beyond the folds of the portrait.

    `image` [1, 3, 512, 512] RGB 0..1; `points` [478, 3] its landmarks, pixels.
    """
    photo = image[:, :, MOUTH.top : MOUTH.bottom, MOUTH.left : MOUTH.right]
    here = pool(photo, POOL)
    x, y = g.constant(MOUTH.columns()[:, ::POOL] + (POOL - 1) / 2), g.constant(MOUTH.rows()[::POOL] + (POOL - 1) / 2)
    near: Value | None = None
    for fold in FOLDS:
        at = [points[point, 0:2] for point in fold]
        at[0] = at[0] + (at[1] - at[0]) * BESIDE_NOSE
        for start, end in pairwise(at):
            distance = _distance(x, y, start, end)
            near = distance if near is None else g.minimum(near, distance)
    assert near is not None
    near = near / mouth.width
    u, v = mouth.frame.local(x, y)
    skin = (_cheeks(g, points, mouth, u, v) * (1 - _lips(g, points, mouth, u, v))).unsqueeze(0, 1)

    bright = here.mean(1, keep=True)
    valley = -highest(-highest(bright, WIDEST), WIDEST) - bright
    ridge = bright - highest(-highest(-bright, WIDEST), WIDEST)
    unlike = _evened(highest(g.maximum(valley, ridge), 3), 3)
    is_fold = g.smoothstep((unlike - UNLIKE[0]) / (UNLIKE[1] - UNLIKE[0]))
    detail = pool((photo - _enlarged(here)).mean(1, keep=True).abs(), POOL) * skin
    rough = highest(_evened(detail, HAIR_AROUND), HAIR_AROUND)
    skin = skin * (1 - g.smoothstep((rough - ROUGH[0]) / (ROUGH[1] - ROUGH[0])))

    # A membrane over the band, held by the skin beside it: begun from the mean of that around, then relaxed.
    held = g.smoothstep((near - SIDES[0]) / (SIDES[1] - SIDES[0])) * skin
    some = held + 1e-6
    flat = _evened(_evened(here * some, AROUND), AROUND) / _evened(_evened(some, AROUND), AROUND)
    by_photo = here * held
    for _ in range(SWEEPS):
        flat = by_photo + _evened(flat, STEP) * (1 - held)
    flat = g.minimum(g.maximum(flat, here - DARKER), highest(here, NEAR) + LIGHTER)
    inside = 1 - g.smoothstep((near - BAND[0]) / (BAND[1] - BAND[0]))
    share = inside * is_fold * skin
    # What is enlarged again is softer than the photo: so it is made up for.
    wanted = (_enlarged(flat) - photo) * _enlarged(share)
    fill = pool(wanted, POOL)
    for _ in range(SHARPENED):
        fill = fill + pool(wanted - _enlarged(fill), POOL)
    return fill


def _lips(g: Graph, points: Value, mouth: MouthRegion, u: Value, v: Value) -> Value:
    """[h, w] 1 on the lips and between them, 0 from OFF beyond them on."""
    left, right = OUTER_MOUTH_CORNERS
    upper, lower = (
        polyline(g, *mouth.frame.local_points(points.take([left, *rows[-1], right])), len(rows[-1]) + 2, u)
        for rows in (UPPER_LIP_ROWS, LOWER_LIP_ROWS)
    )
    ends, _ = mouth.frame.local_points(points.take([left, right]))
    beyond = g.maximum(g.maximum(upper - v, v - lower), g.maximum(ends[0] - u, u - ends[1]))
    return 1 - g.smoothstep(beyond / OFF)


def _cheeks(g: Graph, points: Value, mouth: MouthRegion, u: Value, v: Value) -> Value:
    """[h, w] 0 beyond the outline of the face at its sides, 1 from OFF inside of it on."""
    sides = []
    for side in (FACE_OUTLINE[28:20:-1], FACE_OUTLINE[8:16]):  # from the ears down
        across, down = mouth.frame.local_points(points.take(side))
        sides.append(polyline(g, down, across, len(side), v))
    return g.smoothstep(g.minimum(u - sides[0], sides[1] - u) / OFF)


def _enlarged(image: Value) -> Value:
    """[1, n, MOUTH] of a pooled image, as it is sampled in a frame."""
    scales = np.array([1, 1, POOL, POOL], np.float32)
    return image.graph.op("Resize", image, "", scales, mode="linear", coordinate_transformation_mode="half_pixel")


def _evened(image: Value, side: int) -> Value:
    return image.graph.op("AveragePool", image, kernel_shape=[side, side], strides=[1, 1], pads=[side // 2] * 4)


def _distance(x: Value, y: Value, start: Value, end: Value) -> Value:
    """[h, w] from the line between two points [2]."""
    along = end - start
    length = (along * along).sum(0) + 1e-3
    dx, dy = x - start[0], y - start[1]
    part = ((dx * along[0] + dy * along[1]) / length).clip(0, 1)
    ox, oy = dx - part * along[0], dy - part * along[1]
    return (ox * ox + oy * oy + 1e-6).sqrt()
