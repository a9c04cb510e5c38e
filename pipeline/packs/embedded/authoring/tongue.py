"""The tip of the tongue between the teeth, and how the keypoints tell of it.

The face mesh has no landmark on the tongue. But gaze reads only the mean of an iris' points, so the four of its rim
can say how far the tongue is out: opposite ones move up, the other two down, which no motion of head or eye does.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from .anatomy import EYES, LIP_MIDDLE, LOWER_INNER, MOUTH_CORNERS, NEUTRAL, POINTS, UPPER_INNER
from .guard import downward
from .writer import Graph, Value

STEP = 0.01
"""Motion of each point of a rim for tongueOut of 1, decimetres of the average head."""

HALF_WIDTH = 0.22
"""Of the tip, in widths of the mouth."""

SEEN_FROM, FULL_AT = 0.05, 0.35
"""tongueOut at which the tip begins to show, and from which it is as broad and as clear as it gets."""


GREY = 1e-5
"""Weight of what is light in mouths without colours: little beside a red tongue's 1e-2."""

FORWARD = 0.95
"""Share of the light on the tip that does not depend on the opening: it stands before the teeth, not behind them."""


def _pattern() -> npt.NDArray[np.float32]:
    pattern = np.zeros((1, POINTS), np.float32)
    for eye in EYES:
        pattern[0, eye.iris[1:]] = 1, -1, 1, -1
    return pattern


def tongue_unit() -> npt.NDArray[np.float32]:
    """[478, 3] displacement by tongueOut of 1."""
    return (_pattern().T * STEP * np.array([0, 1, 0])).astype(np.float32)


def tongue_out(g: Graph, moves: Value, driving: Value) -> Value:
    """[] the coefficient of tongueOut in the keypoints' motion [478, 2]."""
    left, right = EYES[0].corners[0], EYES[1].corners[1]
    apart = driving[right] - driving[left]
    model = float(np.linalg.norm(NEUTRAL[right, :2] - NEUTRAL[left, :2]))
    size = ((apart * apart).sum(0) + 1e-6).sqrt() / model
    told = ((g.constant(_pattern()) @ moves) * downward(driving)).sum(0, 1)
    return told / (size * float(np.abs(_pattern()).sum() * STEP))


@dataclass(frozen=True)
class Tip:
    """The tip drawn at pixels of a patch."""

    layer: Value
    """[1, 4, h, w] colour, and the share of it that is lit already, as in the layers of the mouth."""
    alpha: Value
    """[1, 1, h, w]."""


def tongue_tip(g: Graph, out: Value, driving: Value, where: Value, cavity: Value) -> Tip:
    """`driving` [478, 2] and `where` [1, h, w, 2] in crop units; `cavity` [1, 3, h, w]: its tongue gives the colour."""
    upper, lower = driving[UPPER_INNER[LIP_MIDDLE]], driving[LOWER_INNER[LIP_MIDDLE]]
    axis = driving[MOUTH_CORNERS[1]] - driving[MOUTH_CORNERS[0]]
    width = ((axis * axis).sum(0) + 1e-6).sqrt()
    axis, opening = axis / width, lower - upper
    gap = g.maximum(((opening * opening).sum(0) + 1e-9).sqrt() / width, 0.03)

    from_lip = (where - lower) / width
    x, y = from_lip[:, :, :, 0].unsqueeze(1), from_lip[:, :, :, 1].unsqueeze(1)
    across, down = x * axis[0] + y * axis[1], y * axis[0] - x * axis[1]

    def bell(value: Value) -> Value:
        return (-(value * value)).exp()

    # Its tongue is what is red and light: teeth are light only, the throat is red only. Without colours, what is light.
    red = (cavity[:, 0:1] - cavity[:, 1:2]).clip(0, None) * (1 / 255)
    bright = cavity[:, 0:1] * (1 / 255)
    floor = bell(across / 0.10) * bell(down / 0.2) * ((red * red) * (red * red) + bright * GREY)
    colour = (cavity * floor).sum(2, 3, keep=True) / (floor.sum(2, 3, keep=True) + 1e-9)

    clear = g.smoothstep((out - SEEN_FROM) / (FULL_AT - SEEN_FROM))
    half = HALF_WIDTH * (clear * 0.3 + 0.7)
    # From the edges of the upper teeth to the lower lip, which hides its lower end.
    side, rise = across / half, (down + gap * 0.12) / (gap * 0.52 + 0.012)
    radius = side * side + rise * rise
    alpha = g.smoothstep((1 - radius.sqrt()) / 0.2) * clear
    lit = (1 - radius.clip(0, 1) * 0.35) * (1 - bell(side / 0.16) * bell((rise + 0.2) / 0.8) * 0.10) * 1.35
    gloss = bell((side + 0.32) / 0.2) * bell((rise - 0.05) / 0.25) * 0.16 + 1
    colour = colour * lit * gloss
    share = alpha * 0 + 255 * FORWARD
    return Tip(g.concat([colour, share], axis=1), alpha)
