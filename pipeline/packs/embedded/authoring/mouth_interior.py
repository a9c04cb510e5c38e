"""What shows between open lips: upper teeth on the skull; cavity, tongue and lower teeth on the jaw.

The portrait's own teeth are used where it shows them; everything else is drawn in the portrait's
tone, without the shadow of the lips, which falls on it in every frame anew (edges.py).
Lengths are in widths of the mouth.
"""

from __future__ import annotations

from dataclasses import dataclass

from .anatomy import EYES, LIP_MIDDLE
from .own_mouth import OwnMouth
from .portrait import LOWER_LIP_SHARE
from .regions import MouthRegion
from .teeth import LOWER, UPPER, row_of_teeth
from .tone import Tone
from .windows import MOUTH
from .writer import Graph, Value

EYES_TO_MOUTH = 0.482
"""Width of the average mouth, in distances of the outer corners of the eyes: teeth grow with the head, not the lips."""

UPPER_EDGE_BELOW, LOWER_EDGE_ABOVE = 0.055, -0.012
"""Where the edges of the teeth stand: below the line of the closed lips, above the edge of the lower lip."""

DEEP, NEAR, TONGUE, GUM = (50, 17, 17), (122, 52, 48), (196, 106, 102), (190, 112, 108)
UPPER_ENAMEL, LOWER_ENAMEL, SHADOW = (243, 228, 204), (228, 208, 182), (84, 42, 36)
"""RGB of 255 under the light of an average portrait."""


BRIGHTER = 1.6
"""How much brighter than the face tells the portrait's own teeth may say that teeth are."""

OWN_HUE = 0.5
"""Part of the way that the colour of drawn teeth goes to that of the portrait's own."""

FORWARD = 0.45
"""Share of the light on the upper teeth that does not depend on the opening: they stand right behind the lips."""


@dataclass(frozen=True)
class Interior:
    teeth: Value
    """[1, 5, MOUTH] colour of the upper teeth, share of it that is lit already (own), and coverage."""
    cavity: Value
    """[1, 7, MOUTH] colour of cavity, tongue and lower teeth as drawn and as the portrait's own; the own's coverage."""


def _over(below: Value, above: Value, alpha: Value) -> Value:
    return below + (above - below) * alpha


def _bell(value: Value, width: float) -> Value:
    scaled = value / width
    return (-(scaled * scaled)).exp()


def mouth_interior(g: Graph, image: Value, points: Value, mouth: MouthRegion) -> Interior:
    """What is behind the lips of a photo [1, 3, 512, 512] with landmarks [478, 3] in pixels."""
    tone = Tone(g, image, points)
    x, y = g.constant(MOUTH.columns()), g.constant(MOUTH.rows())
    u, v = mouth.frame.local(x, y)
    eyes = points[EYES[1].corners[1], 0:2] - points[EYES[0].corners[0], 0:2]
    width = mouth.width * 0.5 + (eyes * eyes).sum(0).sqrt() * (EYES_TO_MOUTH * 0.5)
    middle = LIP_MIDDLE + 1
    across = (u - mouth.upper[0][middle]) / width
    upper_lip, lower_lip = mouth.upper[1][middle], mouth.lower[1][middle]
    line = upper_lip + g.minimum((lower_lip - upper_lip) * (1 - LOWER_LIP_SHARE), width * 0.05)
    from_lower_lip = (v - lower_lip) / width

    cavity = _cavity(g, tone, across, from_lower_lip)
    pixel = 1 / width
    lower = row_of_teeth(g, LOWER, across, from_lower_lip + LOWER_EDGE_ABOVE, -1.0, pixel)
    lower_color = _over(tone(SHADOW), _over(tone(LOWER_ENAMEL), tone(GUM), lower.gum), lower.light * 0.80)
    cavity = _over(cavity, lower_color, lower.alpha)

    # The row follows the curve of the closed lips in part, as teeth and lips do in a smile.
    lips = mouth.upper_edge(u)
    curve = (lips + g.minimum((mouth.lower_edge(u) - lips) * (1 - LOWER_LIP_SHARE), width * 0.05) - line) * 0.3
    own = OwnMouth(g, image, tone, mouth, u, v)
    # Lips that part without showing teeth say that these end higher.
    highest = (upper_lip - line) / width + pixel
    edge = UPPER_EDGE_BELOW + (highest - UPPER_EDGE_BELOW).clip(None, 0) * (own.use * (1 - own.shows_teeth))
    upper = row_of_teeth(g, UPPER, across, (v - line - curve) / width - edge, 1.0, pixel)
    # The portrait's own teeth tell their colour, and what light falls there unless they hang in shadow.
    enamel, seen = tone(UPPER_ENAMEL), own.use * own.shows_teeth
    drawn, shown = (colour.mean(0, keep=True) + 1e-3 for colour in (enamel, own.enamel))
    hue = _over(enamel / drawn, own.enamel / shown, seen * g.smoothstep((shown / drawn - 0.7) / 0.2) * OWN_HUE)
    enamel = (hue * _over(drawn, g.maximum(drawn, g.minimum(shown, drawn * BRIGHTER)), seen)).clip(0, 1)
    teeth = _over(tone(SHADOW), _over(enamel, tone(GUM), upper.gum), upper.light)
    alpha = upper.alpha

    upwards = g.maximum(own.teeth, _over(alpha, (across.abs() < 0.46).cast(), own.has_teeth))
    own_alpha = g.where(g.op("LessOrEqual", v, own.upper + 1.5), upwards, own.teeth)
    alpha = _over(alpha, own_alpha, own.kept)
    of_teeth, of_cavity = own.kept * g.maximum(own.inside, own.has_teeth), own.use * own.rest
    return Interior(
        teeth=_layer(g, _over(teeth, own.color, of_teeth), of_teeth * (1 - FORWARD) + FORWARD, alpha),
        cavity=g.concat([cavity, own.color, of_cavity.unsqueeze(0)], axis=0).unsqueeze(0),
    )


def _layer(g: Graph, colour: Value, *more: Value) -> Value:
    return g.concat([colour, *(channel.unsqueeze(0) for channel in more)], axis=0).unsqueeze(0)


def _cavity(g: Graph, tone: Tone, across: Value, from_lower_lip: Value) -> Value:
    """[3, h, w] the dark of the throat, lighter towards cheeks and floor; the tongue, a dome that fades backwards."""
    step, far = g.smoothstep, across.abs()
    nearness = (step((far - 0.18) / 0.35) * 0.5 + step((from_lower_lip + 0.28) / 0.30) * 0.5).clip(0, 1)
    cavity = _over(tone(DEEP), tone(NEAR), nearness)
    dome = (1 - (far / 0.37) * (far / 0.37)).clip(0, 1)
    top = dome.sqrt() * -0.20 + 0.02
    alpha = step((from_lower_lip - top) / 0.09) * step(dome / 0.25)
    forwards = step((from_lower_lip - top) / 0.20)
    groove = _bell(across, 0.022) * 0.20 * forwards
    gloss = _bell(far - 0.09, 0.055) * _bell(from_lower_lip + 0.085, 0.035) * 0.22
    lit = (forwards * 0.55 + 0.40) * (1 - groove) * (dome * 0.35 + 0.65)
    return _over(cavity, tone(TONGUE) * lit + gloss * tone.brightness, alpha)
