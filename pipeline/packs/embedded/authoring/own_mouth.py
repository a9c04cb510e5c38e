"""What a portrait itself shows between its lips."""

from __future__ import annotations

import numpy as np

from .layers import crop
from .portrait import LOWER_LIP_SHARE
from .regions import MouthRegion
from .sampling import sample
from .tone import Tone
from .windows import MOUTH
from .writer import Graph, Value

BITE_DEPTHS = np.linspace(0.1, 0.9, 9).astype(np.float32).reshape(9, 1, 1)
"""Where between the lips the dark line is looked for that parts upper teeth from lower ones: 0 upper lip, 1 lower."""

STILL_SEEN = (0.055, 0.075)
"""How far below the line of the closed lips a row above another must reach to be seen in speech, widths of the mouth:
not at all, and for sure."""


def bite_line(g: Graph, bright: Value, depth: Value, middle: Value, attached: Value) -> tuple[Value, Value]:
    """Depth of the dark line between two rows of teeth, and 0..1 how clearly there are two.

    `bright` [h, w]: what looks like teeth, `depth` [h, w]: 0..1 between the lips, `middle` [h, w]: 1 where to look,
    `attached` []: 0..1 whether teeth begin right at the upper lip.
    """
    off = (depth.unsqueeze(0) - BITE_DEPTHS) / 0.07
    weight = (-(off * off)).exp() * middle.unsqueeze(0)
    rows = (weight * bright.unsqueeze(0)).sum(1, 2) / (weight.sum(1, 2) + 0.05)
    last = len(BITE_DEPTHS) - 1
    above = g.concat([rows[:i].max(0).reshape(1) for i in range(2, last)], axis=0)
    below = g.concat([rows[i + 1 :].max(0).reshape(1) for i in range(2, last)], axis=0)
    valley = (g.minimum(above, below) - rows[2:last]) / (rows.max(0) + 0.05)
    share = ((valley - valley.max(0)) * 40).exp()
    share = share / share.sum(0)
    line = (share * BITE_DEPTHS[2:-1, 0, 0]).sum(0)
    # Upper teeth stand further forwards, in more light. If the lower row is as bright, it may as well be they, below
    # the shadow of the lip, unless teeth begin right at the lip.
    ratio = (share * above).sum(0) / ((share * below).sum(0) + 0.01)
    upper_seen = g.maximum(g.smoothstep((ratio - 1.1) / 0.3), attached)
    return line, g.smoothstep((valley.max(0) - 0.04) / 0.07) * upper_seen


class OwnMouth:
    """What the portrait itself shows between its lips: upper teeth, and all that goes with the jaw."""

    def __init__(self, g: Graph, image: Value, tone: Tone, mouth: MouthRegion, u: Value, v: Value) -> None:
        step, width = g.smoothstep, mouth.width
        opening = mouth.opening / width
        self.use = step((opening - 0.045) / 0.025)
        """1 where the mouth is open enough to look into it."""
        self.upper, lower = mouth.upper_edge(u), mouth.lower_edge(u)
        corner = step((width * 0.5 - (u - mouth.middle).abs() + 1) / 2)
        gap = lower - self.upper
        corner = corner * step((gap - 2.5) / 2)
        self.inside = step((v - self.upper + 1) / 1.5) * step((lower - v + 1.5) / 1.5) * corner
        """[h, w] 1 in the opening and a pixel around it."""
        here = crop(image, MOUTH)[0]
        bright = step((here.mean(0) - tone.brightness * 0.12) / 0.16)
        # Lips and gums are redder than teeth.
        red = (here[0] - here[1]) / (here[0] + 0.05)
        bright = bright * (1 - step((red - tone.redness - 0.08) / 0.15))
        # In a mouth wide open, what is bright in the lower half is the tongue or the lower teeth.
        depth = (v - self.upper) / gap.clip(1, None)
        bright = bright * (1 - step((depth - 0.45) / 0.2) * step((opening - 0.25) / 0.1))
        # Where a dark line parts two rows, the lower one goes with the jaw.
        central = self.inside * (1 - step(((u - mouth.middle).abs() / width - 0.22) / 0.1))
        shown = (self.inside * bright).sum(0, 1) / (self.inside.sum(0, 1) + 1)
        at_lip = (v - self.upper - 2.0) / 1.3
        at_lip = (-(at_lip * at_lip)).exp() * central
        attached = step(((at_lip * bright).sum(0, 1) / (at_lip.sum(0, 1) + 0.1) - 0.77) / 0.07)
        line, two_rows = bite_line(g, bright * (here.mean(0) / tone.brightness).clip(0, 1), depth, central, attached)
        lower_row = step((depth - line) / 0.12 + 0.5) * two_rows * bright
        bright = bright - lower_row
        lit = self.inside * bright * here.mean(0)
        self.enamel = ((here * lit).sum(1, 2) / (lit.sum(0, 1) + 0.1)).reshape(3, 1, 1)
        """[3, 1, 1] colour of the upper teeth, the better lit ones first."""
        self.teeth = self.inside * bright
        """[h, w] coverage of the upper teeth."""
        self.shows_teeth = step((shown - 0.05) / 0.1)
        """1 if teeth are seen at all."""
        reach = ((line - (1 - LOWER_LIP_SHARE)) * opening - STILL_SEEN[0]) / (STILL_SEEN[1] - STILL_SEEN[0])
        self.kept = self.use * self.shows_teeth * attached * (1 - two_rows * (1 - step(reach)))
        """1 if these teeth stay when the mouth moves: a row that hangs free of the lip would float; of one that ends
        high a comb of tips would be left below a lip that has come down."""
        self.has_teeth = step((shown - 0.45) / 0.1) * (1 - step((opening - 0.4) / 0.1)) * attached
        """1 if teeth fill the opening, so that they may be carried on under the upper lip."""
        # Beside teeth that fill the opening, and between lips that part a little, only the dark is of use; the rest
        # there is lip.
        dark = g.maximum(1 - step((here.mean(0) - tone.brightness * 0.16) / 0.12), lower_row)
        rest = ((1 - bright) * 2).clip(0, 1) * (
            1 - g.maximum(self.has_teeth, 1 - step((opening - 0.2) / 0.1)) * (1 - dark)
        )
        self.rest = self.inside * ((rest - 1) * self.kept + 1)
        """[h, w] coverage of what goes with the jaw: all, where the teeth are not kept."""
        kept = g.maximum(g.minimum(v, lower - 1), self.upper + 1)
        outside = g.op("Or", v > lower - 1.0, v < self.upper + 1.0)
        self.color = g.where(outside, sample(g, image, *mouth.frame.pixel(u, kept))[0], here)
        """[3, h, w] the portrait in the opening, carried on beyond its edges."""
