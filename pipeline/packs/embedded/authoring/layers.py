"""Colours and coverage of the head and jaw layers around the slits of mouth and eyes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .regions import EyeRegion, MouthRegion
from .windows import CROP, SIZE, SLITS, Window
from .writer import Graph, Value

LIP_ENDS_OVER = 2.0
"""Pixels over which a lip's edge fades."""

LID_ENDS_OVER = 1.8
"""The same for a lid."""


@dataclass(frozen=True)
class SkinLayers:
    head_color: Value
    """[1, 3, 512, 512] the portrait, the upper lip's colour carried on below its edge."""
    mouth_cover: Value
    """[1, 1, SLITS] 1 where the head layer covers what is behind the mouth's slit."""
    eye_cover: Value
    """[1, 1, SLITS] the same for the eyes."""
    jaw_color: Value
    """[1, 3, SLITS] the portrait, the lower lip's colour carried on above its edge."""
    jaw_alpha: Value
    """[1, 1, SLITS] 1 where the jaw layer covers what is behind it: the inside of the mouth, the eyeballs."""
    eyeballs: Value
    """[1, 3, SLITS] the eyes' colours, carried on beyond lids and corners; the portrait elsewhere."""


def sample(g: Graph, image: Value, x: Value, y: Value) -> Value:
    """[1, 3, h, w] linear samples of the crop at pixels x, y [h, w]."""
    grid = g.op("Concat", x.unsqueeze(2), y.unsqueeze(2), axis=2)
    grid = ((grid + 0.5) * (2 / SIZE) - 1).unsqueeze(0)
    return g.op("GridSample", image, grid, mode="linear", padding_mode="border", align_corners=0)


def crop(image: Value, window: Window) -> Value:
    return image[:, :, window.top : window.bottom, window.left : window.right]


def skin_layers(g: Graph, image: Value, mouth: MouthRegion, eyes: list[EyeRegion]) -> SkinLayers:
    x, y = g.constant(SLITS.columns()), g.constant(SLITS.rows())
    u, v = mouth.frame.local(x, y)
    upper, lower = mouth.upper_edge(u), mouth.lower_edge(u)
    zone = mouth.zone(x, y)
    # Lips that hardly part are treated as closed: what shows between them stays with the upper lip.
    is_open = g.smoothstep((mouth.opening / mouth.width - 0.045) / 0.025)
    upper = upper + (lower - upper).clip(0, None) * (1 - is_open)
    along = (u - mouth.middle).abs()

    inside = 1 - g.smoothstep((zone - 0.955) / 0.06)
    below_upper = g.smoothstep((v - upper + is_open * 0.7) / LIP_ENDS_OVER)
    mouth_cover, eye_cover = 1 - below_upper * inside, u * 0 + 1
    between_corners = g.smoothstep((mouth.width * 0.5 - along + 1) / 3)
    uncovered = g.smoothstep((lower - v + 0.1 + is_open * 0.5) / LIP_ENDS_OVER) * between_corners
    here = crop(image, SLITS)
    eyeballs = jaw_start = here
    for eye in eyes:
        eye_zone = eye.zone(x, y)
        eye_u, eye_v = eye.frame.local(x, y)
        upper_lid, lower_lid = eye.upper_edge(eye_u), eye.lower_edge(eye_u)
        below_lid = g.smoothstep((eye_v - upper_lid - 0.3) / LID_ENDS_OVER)
        eye_cover = eye_cover * (1 - below_lid * (1 - g.smoothstep((eye_zone - 0.95) / 0.06)))
        above_lower = g.smoothstep((lower_lid - eye_v + 0.2) / LID_ENDS_OVER)
        above_lower = above_lower * g.smoothstep((eye.width * 0.5 - eye_u.abs()) / 3)
        uncovered = uncovered * g.smoothstep((eye_zone - 1.03) / 0.06)
        uncovered = g.maximum(uncovered, above_lower * (1 - g.smoothstep((eye_zone - 0.95) / 0.06)))
        eyeballs = g.where(eye_zone < 1.0, _eyeball(g, image, eye, x, y), eyeballs)
        lid_colour = sample(g, image, *eye.frame.pixel(eye_u, lower_lid + 1.2))
        jaw_start = g.where(g.op("And", above_lower > 0.0, eye_zone < 1.0), lid_colour, jaw_start)

    # Beyond its edge each lip's colour is carried on, so that a stretched edge shows skin, not teeth.
    near = g.op("And", zone < 0.95, along < mouth.width * 0.55)

    def carried_on(beyond: Value, edge: Value, elsewhere: Value) -> Value:
        colours = sample(g, image, *mouth.frame.pixel(u, edge))
        return g.where(g.op("And", near, beyond), colours, elsewhere)

    upper_end = upper + 0.6 - is_open * 2.1
    lower_end = lower + 0.5 + is_open * 2.2
    head_colour = carried_on(v > upper_end, g.minimum(v, upper_end), here)
    jaw_colour = carried_on(v < lower_end, g.maximum(v, lower_end), jaw_start)

    top, left, bottom, right = SLITS.margins(CROP)
    change = g.op("Pad", head_colour - here, np.array([0, 0, top, left, 0, 0, bottom, right]))
    return SkinLayers(
        head_color=image + change,
        mouth_cover=mouth_cover.unsqueeze(0, 1),
        eye_cover=eye_cover.unsqueeze(0, 1),
        jaw_color=jaw_colour,
        jaw_alpha=(1 - uncovered).unsqueeze(0, 1),
        eyeballs=eyeballs,
    )


def _eyeball(g: Graph, image: Value, eye: EyeRegion, x: Value, y: Value) -> Value:
    """[1, 3, SLITS] the portrait inside the eye's opening; outside its edge carried on, mirrored at the corners."""
    u, v = eye.frame.local(x, y)
    reach = eye.width * 0.5 - 2.5
    inner_u = g.minimum(u.abs(), (reach * 2 - u.abs()).clip(0, None)) * u.sign()
    upper, lower = eye.upper_edge(inner_u), eye.lower_edge(inner_u)
    inset = g.minimum((lower - upper) * 0.3, 1.0)
    inner_v = g.maximum(g.minimum(v, lower - inset), upper + inset)
    outside = ((inner_u - u).abs() + (inner_v - v).abs()) > 0.0
    return g.where(outside, sample(g, image, *eye.frame.pixel(inner_u, inner_v)), crop(image, SLITS))
