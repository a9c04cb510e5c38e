"""What a portrait itself shows between its lips."""

from __future__ import annotations

from .layers import crop
from .regions import MouthRegion
from .sampling import sample
from .tone import Tone
from .windows import MOUTH
from .writer import Graph, Value


class OwnMouth:
    """What the portrait itself shows between its lips: upper teeth, and all that goes with the jaw."""

    def __init__(self, g: Graph, image: Value, tone: Tone, mouth: MouthRegion, u: Value, v: Value) -> None:
        step, width = g.smoothstep, mouth.width
        opening = mouth.opening / width
        self.use = step((opening - 0.08) / 0.04)
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
        self.teeth = self.inside * bright
        """[h, w] coverage of the upper teeth."""
        shown = self.teeth.sum(0, 1) / (self.inside.sum(0, 1) + 1)
        self.shows_teeth = step((shown - 0.05) / 0.1)
        """1 if teeth are seen at all."""
        self.has_teeth = step((shown - 0.45) / 0.1) * (1 - step((opening - 0.4) / 0.1))
        """1 if teeth fill the opening, so that they may be carried on under the upper lip."""
        # Beside teeth that fill the opening, and between lips that part a little, only the dark is of use; the rest
        # there is lip.
        dark = 1 - step((here.mean(0) - tone.brightness * 0.16) / 0.12)
        self.rest = (
            self.inside
            * ((1 - bright) * 2).clip(0, 1)
            * (1 - g.maximum(self.has_teeth, 1 - step((opening - 0.2) / 0.1)) * (1 - dark))
        )
        """[h, w] coverage of what goes with the jaw."""
        kept = g.maximum(g.minimum(v, lower - 1), self.upper + 1)
        outside = g.op("Or", v > lower - 1.0, v < self.upper + 1.0)
        self.color = g.where(outside, sample(g, image, *mouth.frame.pixel(u, kept))[0], here)
        """[3, h, w] the portrait in the opening, carried on beyond its edges."""
