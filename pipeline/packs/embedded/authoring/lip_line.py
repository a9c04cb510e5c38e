"""The dark line that a portrait shows between its lips and beyond their corners.

It belongs to lips that touch. In a mouth that opens it would stay as a notch beside the corners and
as a rim around the opening; so each layer carries along by how much it has to be brightened there.
Lengths are pixels of 512.
"""

from __future__ import annotations

from .regions import MouthRegion
from .sampling import highest, sample
from .writer import Graph, Value

REACH = 0.055
"""How far from the lips' edges their dark is looked for, in widths of the mouth; skin beyond tells how bright to be."""

LEFT = (0.45, 0.12)
"""Part of the dark that stays: in the middle of the lips, where an edge casts a shadow, and at the corners."""

AROUND, LIGHTER = 7, 0.035
"""Side of what is around a place, and how much lighter than its lightest the place may become: thin lips are darker
than the skin beside them."""

BESIDE = (-2.5, 0.0, 2.5)
"""Where along the line the skin is looked at."""


def line_darkness(
    g: Graph, image: Value, mouth: MouthRegion, u: Value, v: Value, head: Value, jaw: Value
) -> tuple[Value, Value]:
    """[h, w] each: what to add to all channels of the `head` and `jaw` layers [1, 3, h, w] to brighten the line."""
    step, reach = g.smoothstep, mouth.width * REACH + 1.5
    upper, lower = mouth.upper_edge(u), mouth.lower_edge(u)
    along = (u - mouth.middle).abs() / mouth.width

    def skin(at: Value) -> Value:
        seen = [sample(g, image, *mouth.frame.pixel(u + beside, at))[0].mean(0) for beside in BESIDE]
        return (seen[0] + seen[1] + seen[2]) * (1 / 3)

    above, below = skin(upper - reach), skin(lower + reach)
    # Beyond the corners there is no edge between above and below.
    outside = step((along - 0.47) / 0.06)
    line = (upper + lower) * 0.5
    mixed = above + (below - above) * step((v - line) / reach * 0.5 + 0.5)
    kept = LEFT[0] + (LEFT[1] - LEFT[0]) * step((along - 0.2) / 0.25)
    share = (1 - kept) * (1 - step((along - 0.56) / 0.10))

    def missing(expected: Value, colour: Value, beyond: Value) -> Value:
        # Beyond its edge, where a layer's colour is carried on, twice as far.
        distance = g.maximum(beyond * 0.5, -beyond)
        near = 1 - step((distance / reach - 0.5) / 0.5)
        bright = colour.mean(1, keep=True)
        around = highest(bright, AROUND)
        lightest = g.minimum(expected + (mixed - expected) * outside, around[0, 0] + LIGHTER)
        return (lightest - bright[0, 0]).clip(0, None) * near * share

    return missing(above, head, v - upper), missing(below, jaw, lower - v)
