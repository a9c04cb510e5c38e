"""Edges of lips, kept as distances, and the light that falls through the opening between two of them.

Lengths are pixels of 512.
"""

from __future__ import annotations

import numpy as np

from .writer import Graph, Value

REACH = 6.0
"""Pixels of 512 to which distances from an edge are kept; as textures they run from 0 to 1, with the edge at 0.5."""

ENDS_OVER = 2.0
"""Pixels over which an edge fades."""

PART_OVER = 3.0
"""Gap, pixels, from which two lips are drawn apart: below it they overlap, so that no dark line shows."""

LIGHT_TALL, LIGHT_WIDE, LIGHT_ABOVE = 28, 52, 8
"""Sides of the rectangle from which light falls on a point, and how far its middle is above the point (light comes
from above, and the upper lip is in its way); pixels of 512."""

DARKEST = np.array([0.54, 0.45, 0.42], np.float32).reshape(1, 3, 1, 1)
"""Light deep between lips that hardly part, RGB: what reaches there was reflected by skin."""


def as_texture(distance: Value) -> Value:
    """0..1 of a distance in pixels of 512, cut at REACH."""
    return (distance * (0.5 / REACH) + 0.5).clip(0, 1)


def as_distance(texture: Value) -> Value:
    """Pixels of 512 of what `as_texture` made."""
    return (texture - 0.5) * (2 * REACH)


def parted(below_upper: Value, above_lower: Value) -> Value:
    """Pixels by which both edges give way: 0 where they touch, almost half of ENDS_OVER where they are apart."""
    return below_upper.graph.smoothstep((below_upper + above_lower) / PART_OVER) * (ENDS_OVER * 0.42)


def beyond(distance: Value) -> Value:
    """0 where a layer with this edge covers, 1 where it lets see through."""
    return distance.graph.smoothstep(distance / ENDS_OVER)


def light(g: Graph, seen: Value, height: int, width: int, shrink: int) -> Value:
    """DARKEST..1 [1, 3, height, width]: the part of the surroundings that is open, from `seen` (1 in the opening)."""
    step = 4 // shrink
    tall, wide, above = LIGHT_TALL // 4, LIGHT_WIDE // 4, LIGHT_ABOVE // 4
    coarse = g.op("AveragePool", seen, kernel_shape=[step, step], strides=[step, step])
    over, beside = tall // 2, wide // 2
    near = g.op("AveragePool", coarse, kernel_shape=[tall, wide], pads=[over + above, beside, over - above, beside],
                count_include_pad=1)  # fmt: skip
    soft = g.smoothstep(near * 1.7) * (1 - DARKEST) + DARKEST
    return g.op("Resize", soft, "", "", np.array([1, 3, height, width]), mode="linear",
                coordinate_transformation_mode="half_pixel")  # fmt: skip
