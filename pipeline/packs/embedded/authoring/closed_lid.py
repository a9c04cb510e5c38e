"""The skin of a closed lid, made from the skin around the eye, and how dark its lashes are."""

from __future__ import annotations

import numpy as np

from .eye_window import EyeWindow
from .lid_curves import COLUMNS, TABLE_REACH, LidCurves, smoothing
from .sampling import sample
from .writer import Value

ABOVE, BELOW = 0.28, 0.17
"""How far beyond the edges of the upper and the lower lid the skin of a closed lid reaches, widths of the eye."""

STRETCHED = 0.3
"""From BELOW on, where it meets the photo without a seam, skin is stretched upwards under the lower lid's lashes: how
much of the photo it shows for its own height. Were a row shown twice, that would be a fold."""

BELOW_ENDS, LID_TURNS = 0.03, 0.06
"""Over which drawn skin below passes into the photo, which it equals there, and that of the lid into it, widths."""

LASHES, LASHES_END = 0.04, 0.10
"""Up to where above its edge all that is not skin moves with the upper lid, and from where on nothing does."""

SKIN_ABOVE, SKIN_BELOW = [0.14, 0.18, 0.22, 0.26], [0.11, 0.14, 0.17]
"""Where above the upper lid's edge and below the lower one's the colour of the closed lid is taken, widths."""

GLARE, GLARE_SURE = 1.25, 0.15
"""From how bright on, to the usual along a lid, skin is a reflection on glasses, and how much more makes it sure."""

IN_SHADE = 0.3
"""How much of its colour a closed lid has from below the eye: above it, the brow casts a shadow that the lid, which
bulges, does not get."""

BULGE = 0.15
"""Of the light on a closed lid, a quarter of which is added in its middle."""

CREASE = 0.2
"""Of the fold above the lid, what is still seen when it is closed."""

LINE_ROWS, LINE_DARKNESS, EVEN = [-0.03, -0.015, 0.0], (0.6, 0.85), 16
"""Where about the upper lid's edge the darkness of its lashes' roots is taken (widths of the eye), its bounds, and how
often it is smoothed along the eye: where a lid lies on a dark iris its edge looks darker than its lashes are."""

TIP_ROWS, TIP_DARKNESS = [-0.09, -0.075, -0.06], (0.35, 0.8)
"""The same of the lashes themselves, which are not smoothed."""

INNER_CORNER = 0.3
"""How dark the line of the lashes is at the inner corner, where they are few and short; 1 at the outer one."""

GRAIN_FROM, GRAIN, PLAIN = 0.62, 0.06, 4.0
"""How far below the eye the skin's grain is taken (widths of the eye), the largest that counts as grain, and how many
times the usual energy it has where there is more than skin (glasses, hair)."""


class ClosedLid:
    """What covers an eye as it closes; `upper`, `lower`: v of its edges, [EYE]."""

    def __init__(self, window: EyeWindow, curves: LidCurves, upper: Value, lower: Value) -> None:
        self.g, self.window, self.curves = window.g, window, curves
        self.upper, self.lower = upper, lower

    def skin(self) -> tuple[Value, Value, Value]:
        """Colour of the closed lids [1, 3, EYE], where it replaces the photo [1, 1, EYE] when they close and always.

        Some of the fold above the lid stays as the eye closes; what is near the lid's edge moves with it.
        """
        g, width, u, v = self.g, self.window.region.width, self.window.u, self.window.v
        top, bottom = self.upper - width * ABOVE, self.lower + width * BELOW
        there = g.smoothstep((v - top) / (width * (ABOVE - LASHES_END)))
        there = there * g.smoothstep((bottom - v) / (width * BELOW_ENDS) + 1)
        there = (there * g.smoothstep((width * 0.62 - u.abs()) / (width * 0.12))).unsqueeze(0, 1)
        above = self._skin_along(self.curves.upper, [-reach for reach in SKIN_ABOVE])
        below = self._skin_along(self.curves.lower, SKIN_BELOW)
        above = above + (below - above) * IN_SHADE
        ends = g.concat([(smoothing(6) @ row.transpose(1, 0)).transpose(1, 0) for row in (above, below)], axis=0)
        ends = self.curves.at(ends, 6, u)
        down = ((v - top) / g.maximum(self.lower - top, 1.0)).clip(0, 1)
        down = g.smoothstep((down - 0.35) / 0.65)
        fill = (ends[:, 0:3] + (ends[:, 3:6] - ends[:, 0:3]) * down) * self._round()
        fill = fill + self._grain()
        stretched = bottom - (bottom - v) * g.where(v < bottom, STRETCHED, 1.0)
        stretched = sample(g, self.window.image, *self.window.region.frame.pixel(u, stretched))
        fill = fill + (stretched - fill) * g.smoothstep((v - self.lower) / (width * LID_TURNS) + 0.5)
        higher = ((self.upper - v) / width).unsqueeze(0, 1)
        moving = there * (1 - g.smoothstep((higher - LASHES) / (LASHES_END - LASHES)))
        closed = there * (1 - g.smoothstep((higher - LASHES_END) / 0.04) * CREASE)
        return fill, closed, moving

    def lash_line(self, inner: float) -> Value:
        """[1, 2, 64]: see EyeLayers; `inner`: -1 where the inner corner is to the left in the picture, else 1."""
        skin = self._skin_along(self.curves.upper, [-reach for reach in SKIN_ABOVE]).mean(0) + 0.02
        roots, tips = (1 - self._rows(self.curves.upper, rows).mean(1).min(0) / skin for rows in (LINE_ROWS, TIP_ROWS))
        line = smoothing(EVEN) @ roots.clip(*LINE_DARKNESS).unsqueeze(1)
        outwards = 0.5 - inner * np.linspace(-TABLE_REACH, TABLE_REACH, COLUMNS)
        few = np.clip(outwards * 2, 0, 1) * (1 - INNER_CORNER) + INNER_CORNER
        both = self.g.concat([line.reshape(1, COLUMNS), tips.clip(*TIP_DARKNESS).reshape(1, COLUMNS)], axis=0)
        return (both * few).reshape(1, 2, COLUMNS)

    def _round(self) -> Value:
        """[EYE] light on a closed lid: more in the middle, where it bulges over the eyeball, less towards its rim."""
        height = ((self.window.v - self.upper) / self.g.maximum(self.lower - self.upper, 1.0)).clip(0, 1)
        across = (self.window.u / (self.window.region.width * 0.5)).clip(-1, 1)
        return (1 - across * across) * (height * (1 - height)) * BULGE + 0.97

    def _grain(self) -> Value:
        """[1, 3, EYE] how the skin below the eye differs from its own mean around; none high above the lid."""
        width = self.window.region.width
        lid = self.g.smoothstep((self.window.v - self.upper) / (width * 0.06) + 2.7)
        skin = self.window.below(self.g.op("Round", width * GRAIN_FROM))
        around = self.g.op("AveragePool", skin, kernel_shape=[5, 5], pads=[2, 2, 2, 2])
        grain = (skin - around).clip(-GRAIN, GRAIN)
        energy = self.g.op("AveragePool", (grain * grain).mean(1, keep=True), kernel_shape=[9, 9], pads=[4, 4, 4, 4])
        usual = 1 / (1 / (energy + 1e-6)).mean(2, 3, keep=True)
        return grain * ((2 - energy / (usual * PLAIN)).clip(0, 1) * lid)

    def _skin_along(self, edge: Value, reaches: list[float]) -> Value:
        """[3, 64] the colour of the skin beside a lid: of several rows rather the brighter, which are no crease; the
        usual colour along the lid in place of a reflection."""
        colours = self._rows(edge, reaches)
        weights = (colours.mean(1, keep=True) * 18).exp()
        found = (colours * weights).sum(0) / weights.sum(0)
        light = found.mean(0, keep=True) + 0.02
        dark = 1 / (light * light)
        usual = (found * dark).sum(1, keep=True) / dark.sum(1, keep=True)
        glare = self.g.smoothstep((light / (usual.mean(0, keep=True) + 0.02) - GLARE) / GLARE_SURE)
        return found + (usual - found) * glare

    def _rows(self, edge: Value, reaches: list[float]) -> Value:
        """[rows, 3, 64] the photo along copies of a lid's edge."""
        rows, region = [], self.window.region
        for reach in reaches:
            x, y = region.frame.pixel(self.curves.u, edge + region.width * reach)
            rows.append(sample(self.g, self.window.image, x.unsqueeze(0), y.unsqueeze(0)).reshape(1, 3, COLUMNS))
        return self.g.concat(rows, axis=0)
