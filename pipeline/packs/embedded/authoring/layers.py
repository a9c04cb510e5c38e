"""Colours and coverage of the head and jaw layers around the slit of the mouth."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .edges import ENDS_OVER, as_texture
from .lip_line import line_darkness
from .regions import MouthRegion
from .sampling import sample
from .windows import CROP, MOUTH, Window
from .writer import Graph, Value

TEETH_OVER = 6
"""Pixels below the edge of an open mouth's lower lip up to which teeth may stand where landmarks have lip already."""

TEETH_RIM = 1.5
"""Pixels below such teeth where they still shade the lip."""

LOWER_TEETH = (0.22, 0.34)
"""How far from the middle of the mouth they stand, in its widths: all of them, and none."""

LIP_AT = 0.085
"""Where a lip is sure to be lip, widths of the mouth from its edge."""

UNLIKE_LIP = (0.11, 0.06)
"""Difference in a channel from the lip there, from which on a colour is not the lip's, and over how much more."""

ALONG = 9
"""Pixels along the lip over which that is evened out."""


@dataclass(frozen=True)
class SkinLayers:
    head_color: Value
    """[1, 3, 512, 512] the portrait, the upper lip's colour carried on below its edge."""
    upper_lip: Value
    """[1, 2, MOUTH] distance below the upper lip's edge (edges.py): above it the head layer covers all; then what
    brightens the line between the lips (lip_line.py)."""
    jaw: Value
    """[1, 5, MOUTH] the portrait, the lower lip's colour carried on above its edge; the same two for the lower lip,
    beyond whose edge the jaw layer is transparent."""


def crop(image: Value, window: Window) -> Value:
    """[1, c, h, w] what of an image [1, c, 512, 512] lies in a window."""
    return image[:, :, window.top : window.bottom, window.left : window.right]


def skin_layers(g: Graph, image: Value, mouth: MouthRegion) -> SkinLayers:
    """Both layers of a photo [1, 3, 512, 512]."""
    x, y = g.constant(MOUTH.columns()), g.constant(MOUTH.rows())
    u, v = mouth.frame.local(x, y)
    upper, lower = mouth.upper_edge(u), mouth.lower_edge(u)
    zone = mouth.zone(x, y)
    # Lips that hardly part are treated as closed: what shows between them stays with the upper lip.
    is_open = g.smoothstep((mouth.opening / mouth.width - 0.045) / 0.025)
    upper = upper + (lower - upper).clip(0, None) * (1 - is_open)
    along = (u - mouth.middle).abs()

    upper_lip = g.minimum(v - upper, (1.015 - zone) * (ENDS_OVER / 0.06))
    jaw_edge = g.minimum(lower - v + 0.1, (mouth.width * 0.49 - along + 1) * (ENDS_OVER / 3))
    here = crop(image, MOUTH)

    # Beyond its edge each lip's colour is carried on, so that a stretched edge shows skin, not teeth.
    near = g.op("And", zone < 0.95, along < mouth.width * 0.51)

    def carried_on(beyond: Value, edge: Value, elsewhere: Value) -> Value:
        colours = sample(g, image, *mouth.frame.pixel(u, edge))
        return g.where(g.op("And", near, beyond), colours, elsewhere)

    upper_end = upper + 0.6 - is_open * 2.5
    lower_end = lower + 0.5 + is_open * 2.2
    head_colour = carried_on(v > upper_end, g.minimum(v, upper_end), here)
    # Teeth that stand on the lip are covered by the lip below them, stretched to twice its height.
    teeth, begin = _teeth_on_lip(g, image, mouth, u, lower) * is_open, g.maximum(v, lower_end)
    stretched = begin + (teeth - (begin - lower) * 0.5).clip(0, None)
    jaw_colour = carried_on(v < g.maximum(lower_end, lower + teeth * 2), stretched, here)

    head_line, jaw_line = line_darkness(g, image, mouth, u, v, head_colour, jaw_colour)
    top, left, bottom, right = MOUTH.margins(CROP)
    change = g.op("Pad", head_colour - here, np.array([0, 0, top, left, 0, 0, bottom, right]))
    return SkinLayers(
        head_color=image + change,
        upper_lip=_with(as_texture(upper_lip), head_line),
        jaw=g.concat([jaw_colour, _with(as_texture(jaw_edge), jaw_line)], axis=1),
    )


def _teeth_on_lip(g: Graph, image: Value, mouth: MouthRegion, u: Value, lower: Value) -> Value:
    """[h, w] pixels below the lower lip's edge that show teeth or the dark between them, told by how unlike the lip
    further down they are."""

    def colour(at: Value) -> Value:
        return sample(g, image, *mouth.frame.pixel(u, at))[0]

    lip = colour(lower + mouth.width * LIP_AT)
    begin, over = UNLIKE_LIP
    along = (u - mouth.middle).abs() / mouth.width
    found, still = u * 0, 1 - g.smoothstep((along - LOWER_TEETH[0]) / (LOWER_TEETH[1] - LOWER_TEETH[0]))
    for distance in range(2, TEETH_OVER + 1):
        still = still * g.smoothstep(((colour(lower + distance) - lip).abs().max(0) - begin) / over)
        found = found + still
    pooled, sides = {"kernel_shape": [1, ALONG], "strides": [1, 1]}, [0, ALONG // 2] * 2
    wide = g.op("MaxPool", found.unsqueeze(0, 1), **pooled, pads=sides)
    even = g.op("AveragePool", wide, **pooled, pads=sides)[0, 0]
    return even + even.clip(0, 1) * TEETH_RIM


def _with(edge: Value, line: Value) -> Value:
    return edge.graph.concat([edge.unsqueeze(0, 1), line.unsqueeze(0, 1)], axis=1)
