"""What shows between open lips: upper teeth on the skull; cavity, tongue and lower teeth on the jaw.

The portrait's own teeth are used where it shows them; everything else is drawn in the
portrait's tone. Lengths are in mouth widths.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .anatomy import CHEEKS, LIP_MIDDLE
from .layers import crop
from .regions import MouthRegion
from .sampling import sample
from .windows import CROP, MOUTH
from .writer import Graph, Value

UPPER_WIDTHS = [0.145, 0.112, 0.100, 0.070, 0.045]
"""Upper teeth from the middle outwards."""
UPPER_DROPS = [0.078, 0.068, 0.070, 0.058, 0.05]
"""How far each hangs below the lip line."""
LOWER_WIDTHS = [0.085, 0.09, 0.10, 0.08]
ROW_FOLLOWS_LIPS = 0.7

CAVITY, TONGUE = (52, 20, 20), (158, 82, 80)
UPPER_ENAMEL, LOWER_ENAMEL, SHADOW = (240, 221, 202), (224, 192, 164), (90, 46, 41)
"""RGB of 255 under the light of an average portrait."""

SKIN = np.array([0.80, 0.62, 0.54], np.float32)
"""Cheek colour under that light."""


@dataclass(frozen=True)
class Interior:
    teeth: Value
    """[1, 4, MOUTH] colour and coverage of the upper teeth."""
    cavity: Value
    """[1, 3, MOUTH] cavity, tongue and lower teeth."""


class Tone:
    """Turns a reference colour into the portrait's light: brightness, tint, and saturation."""

    def __init__(self, g: Graph, image: Value, points: Value) -> None:
        self.g = g
        x, y = g.constant(CROP.columns()), g.constant(CROP.rows())
        weight: Value | None = None
        for cheek in CHEEKS:
            dx, dy = x - points[cheek, 0], y - points[cheek, 1]
            spot = ((dx * dx + dy * dy) * (-1 / (2 * 12.0**2))).exp()
            weight = spot if weight is None else weight + spot
        assert weight is not None
        skin = (image[0] * weight).sum(1, 2) / (weight.sum(0, 1) + 1e-3)
        mean = skin.mean(0) + 1e-3
        chroma = skin.max(0) - skin.min(0)
        tint = (skin / mean / (SKIN / SKIN.mean())).clip(0.6, 1.5)
        self.tint = ((tint - 1) * (chroma / 0.15).clip(0, 1) + 1) ** 0.25
        self.brightness = (mean / 0.70).clip(0.4, 1.0)
        self.saturation = (chroma / 0.22).clip(0, 1)

    def __call__(self, colour: tuple[int, int, int]) -> Value:
        """[3, 1, 1] RGB 0..1."""
        reference = np.array(colour, np.float32) / 255
        grey = float(reference.mean())
        return ((self.saturation * (reference - grey) + grey) * self.tint * self.brightness).clip(0, 1).reshape(3, 1, 1)


def _row_of_teeth(g: Graph, across: Value, widths: list[float], drops: list[float]) -> tuple[Value, Value]:
    """Place within each tooth (-1..1, 1 beyond the row) and its drop, at distances from the middle."""
    place, drop, start = across * 0 + 1, across * 0, 0.0
    for width, tooth_drop in zip(widths, drops, strict=True):
        inside = g.op("And", g.op("GreaterOrEqual", across, start), across < start + width)
        place = g.where(inside, (across - (start + width / 2)) * (2 / width), place)
        drop = g.where(inside, tooth_drop, drop)
        start += width
    return place, drop


def _bell(value: Value, width: float, power: int = 2) -> Value:
    scaled = value / width
    square = scaled * scaled
    return (-(square if power == 2 else square * square)).exp()


def _over(below: Value, above: Value, alpha: Value) -> Value:
    return below + (above - below) * alpha


def mouth_interior(g: Graph, image: Value, points: Value, mouth: MouthRegion) -> Interior:
    tone = Tone(g, image, points)
    x, y = g.constant(MOUTH.columns()), g.constant(MOUTH.rows())
    u, v = mouth.frame.local(x, y)
    width, step = mouth.width, g.smoothstep
    middle = LIP_MIDDLE + 1
    left = g.maximum(mouth.upper[0][middle] - mouth.upper[0][0], width * 0.25)
    right = g.maximum(mouth.upper[0][-1] - mouth.upper[0][middle], width * 0.25)
    off_middle = u - mouth.upper[0][middle]
    across = g.where(off_middle < 0.0, off_middle / (left * 2), off_middle / (right * 2))
    far = across.abs()
    upper_lip, lower_lip = mouth.upper[1][middle], mouth.lower[1][middle]
    below_line = (v - (upper_lip * 0.7 + lower_lip * 0.3)) / width
    from_lower_lip = (v - lower_lip) / width

    cavity = tone(CAVITY) * (_bell(across, 0.40) * 0.70 + 0.30)
    tongue = _bell(across, 0.27, power=4) * 0.8
    tongue = tongue * step((from_lower_lip + 0.16 - g.op("Cos", across * 7) * 0.05) / 0.07)
    tongue_colour = tone(TONGUE) * (step((from_lower_lip + 0.14) / 0.14) * 0.38 + 0.62)
    cavity = _over(cavity, tongue_colour * (1 - _bell(across, 0.02) * 0.12), tongue)

    place, _ = _row_of_teeth(g, far, LOWER_WIDTHS, [0.0] * len(LOWER_WIDTHS))
    size = place.abs()
    lower_edge = size * size * size * 0.008 - 0.010 + far * far * (0.05 / 0.4**2)
    lower_alpha = step((from_lower_lip - lower_edge) / 0.014 + 0.5) * step((sum(LOWER_WIDTHS) - far) / 0.04) * 0.7
    lower_shade = (1 - _bell(1 - size, 0.12) * 0.08) * (0.78 - step((far - 0.08) / 0.25) * 0.40)
    cavity = _over(cavity, tone(LOWER_ENAMEL) * lower_shade, lower_alpha)

    # The row follows the curve of the closed lips in part, as teeth and lips do in a smile.
    lip_line = mouth.upper_edge(u) * 0.7 + mouth.lower_edge(u) * 0.3
    curve = (lip_line - (upper_lip * 0.7 + lower_lip * 0.3)) * ROW_FOLLOWS_LIPS
    below_line = below_line - curve / width
    place, drop = _row_of_teeth(g, far, UPPER_WIDTHS, UPPER_DROPS)
    size = place.abs()
    edge = drop - size * size * size * 0.009
    alpha = step((edge - below_line) / 0.020 + 0.5) * step((sum(UPPER_WIDTHS) - far) / 0.06)
    gap = _bell(1 - size, 0.10) * (step((below_line - edge + 0.06) / 0.06) * 0.12 + 0.06)
    light = (
        (1 - gap)
        * (1 - step((far - 0.08) / 0.38) * 0.60)
        * (0.66 + step((below_line + 0.06) / 0.12) * 0.34)
        * (1 - size * size * 0.05)
    )
    teeth = _over(tone(SHADOW), tone(UPPER_ENAMEL), light)
    own = OwnMouth(g, image, tone, mouth, u, v)
    upwards = _over(alpha, g.maximum(own.teeth, (far < 0.46).cast()), own.has_teeth)
    own_alpha = g.where(g.op("LessOrEqual", v, own.upper + 1.5), upwards, own.teeth)
    teeth = _over(teeth, own.color, own.use * g.maximum(own.inside, own.has_teeth))
    alpha = _over(alpha, own_alpha, own.use)
    cavity = _over(cavity, own.color, own.use * own.rest)
    return Interior(teeth=g.concat([teeth, alpha.unsqueeze(0)], axis=0).unsqueeze(0), cavity=cavity.unsqueeze(0))


class OwnMouth:
    """What the portrait itself shows between its lips: upper teeth, and all that goes with the jaw."""

    def __init__(self, g: Graph, image: Value, tone: Tone, mouth: MouthRegion, u: Value, v: Value) -> None:
        step, width = g.smoothstep, mouth.width
        opening = mouth.opening / width
        self.use = step((opening - 0.05) / 0.02)
        """1 where the mouth is open enough to look into it."""
        self.upper, lower = mouth.upper_edge(u), mouth.lower_edge(u)
        corner = step((width * 0.5 - (u - mouth.middle).abs() + 1) / 2)
        self.inside = step((v - self.upper + 1) / 1.5) * step((lower - v + 1.5) / 1.5) * corner
        """[h, w] 1 in the opening and a pixel around it."""
        here = crop(image, MOUTH)[0]
        bright = step((here.mean(0) - tone.brightness * 0.12) / 0.16)
        # In a mouth wide open, what is bright in the lower half is the tongue or the lower teeth.
        depth = (v - self.upper) / (lower - self.upper).clip(1, None)
        bright = bright * (1 - step((depth - 0.45) / 0.2) * step((opening - 0.25) / 0.1))
        self.teeth = self.inside * bright
        """[h, w] coverage of the upper teeth."""
        self.rest = self.inside * ((1 - bright) * 2).clip(0, 1)
        """[h, w] coverage of what goes with the jaw."""
        shown = self.teeth.sum(0, 1) / (self.inside.sum(0, 1) + 1)
        self.has_teeth = step((shown - 0.45) / 0.1) * (1 - step((opening - 0.4) / 0.1))
        """1 if teeth fill the opening, so that they may be carried on under the upper lip."""
        kept = g.maximum(g.minimum(v, lower - 1), self.upper + 1)
        outside = g.op("Or", v > lower - 1.0, v < self.upper + 1.0)
        self.color = g.where(outside, sample(g, image, *mouth.frame.pixel(u, kept))[0], here)
        """[3, h, w] the portrait in the opening, carried on beyond its edges."""
