"""What a moving eye consists of: the skin of its closed lids, its lashes, the white of the eye, the iris.

Every texture covers a window of the crop about the eye. Where nothing moves they add up to the photo.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
from onnx import TensorProto

from .anatomy import EYES, Eye
from .eyeball import RIM, RIM_ENDS, Eyeball
from .lid_curves import COLUMNS, LidCurves, smoothing
from .regions import EyeRegion
from .sampling import sample
from .windows import EYE, SIZE
from .writer import Graph, Value

EDGE = 1.5
"""Pixels of 512 over which a lid's edge passes into the eyeball."""

ABOVE, BELOW = 0.28, 0.035
"""How far beyond the edges of the upper and the lower lid the skin of a closed lid reaches, widths of the eye."""

LASHES, LASHES_END = 0.04, 0.10
"""Up to where above its edge all that is not skin moves with the upper lid, and from where on nothing does."""

RIM_OF_LIDS = 0.09
"""How far inside the opening what is not the ball's own (lashes, the lids' shade) moves with them, widths of the eye;
at most the third part of the opening."""

SKIN_ABOVE, SKIN_BELOW = [0.14, 0.18, 0.22, 0.26], [0.12, 0.15, 0.18]
"""Where above the upper lid's edge and below the lower one's the colour of the closed lid is taken, widths."""

IN_SHADE = 0.3
"""How much of its colour a closed lid has from below the eye: above it, the brow casts a shadow that the lid, which
bulges, does not get."""

BULGE = 0.35
"""Of the light on a closed lid, a quarter of which is added in its middle."""

CREASE = 0.2
"""Of the fold above the lid, what is still seen when it is closed."""

LASH_ROWS, LASH_DARKNESS = [-0.03, -0.015, 0.0, 0.015, 0.03], (0.45, 0.8)
"""Where about the upper lid's edge its lashes' darkness is taken (widths of the eye), and its bounds."""

GRAIN_FROM, GRAIN, PLAIN = 0.62, 0.06, 4.0
"""How far below the eye the skin's grain is taken (widths of the eye), the largest that counts as grain, and how many
times the usual energy it has where there is more than skin (glasses, hair)."""


@dataclass(frozen=True)
class EyeLayers:
    still: Value
    """[2, 8, EYE] colour of the closed lids' skin, of the eyeball without iris, 1 where that skin replaces the photo
    in a closed eye, and 1 where it does so in every eye, with lashes on it."""
    lashes: Value
    """[2, 3, EYE] what lashes, lid edges and their shade add to skin and ball; moves with the lids."""
    irises: Value
    """[2, 4, EYE] colour of the iris times its coverage, and its coverage; moves with the gaze."""
    frames: Value
    """[2, 4, 2] rows: what u (half tables) and v (pixels) gain per pixel of x, per pixel of y, u and v at the
    window's corner, x and y of that corner in pixels of the crop."""
    edges: Value
    """[2, 2, 64] v of the upper and of the lower lid's edge."""
    motion: Value
    """[2, 2, 64, 7] what each lid landmark's motion adds to them."""
    lash_line: Value
    """[2, 1, 64] how much darker than skin the upper lid's lashes are, 0..1."""


class EyeTextures:
    """The textures of one eye."""

    def __init__(self, g: Graph, image: Value, points: Value, eye: Eye, region: EyeRegion) -> None:
        self.g, self.image, self.region = g, image, region
        self.curves = LidCurves(g, image, region)
        size = np.array([EYE.width, EYE.height], np.float32)
        middle = g.concat([region.frame.x.reshape(1), region.frame.y.reshape(1)], axis=0)
        # Even corners, so that the textures can be pooled in step with the crop.
        corner = g.op("Round", (middle - size / 2) * 0.5) * 2
        self.corner = g.maximum(g.minimum(corner, SIZE - size), 0.0)
        self.x = self.corner[0] + EYE.columns()
        self.y = self.corner[1] + EYE.rows()
        self.u, self.v = region.frame.local(self.x, self.y)
        self.photo = self._window(0.0)
        edges = self.curves.at(self.edges(), 2, self.u)
        self.upper, self.lower = edges[0, 0], edges[0, 1]
        self.ball = Eyeball(g, image, self.curves, region, points.take(eye.iris)[:, 0:2])

    def _window(self, down: Value | float) -> Value:
        """[1, 3, EYE] the photo in the eye's window, or so many pixels below it."""
        corner = self.corner + self.g.concat([np.zeros(1), (self.corner[1] * 0 + down).reshape(1)], axis=0)
        limit = np.array([SIZE - EYE.width, SIZE - EYE.height], np.float32)
        start = self.g.minimum(corner, limit).take([1, 0]).cast(TensorProto.INT64)
        end = start + np.array([EYE.height, EYE.width], np.int64)
        photo = self.g.op("Slice", self.image, start, end, np.array([2, 3]))
        return photo.reshape(1, 3, EYE.height, EYE.width)

    def layers(self) -> tuple[Value, Value, Value]:
        """[1, 8, EYE], [1, 3, EYE], [1, 4, EYE]: see EyeLayers."""
        g = self.g
        skin, closed, moving = self._skin()
        ball, iris = self._eyeball()
        opening = self._opening()
        eyeball = ball * (1 - iris[:, 3:4]) + iris[:, 0:3]
        covered = self.photo + (skin - self.photo) * moving
        lashes = self.photo - covered - (eyeball - covered) * opening
        return g.concat([skin, ball, closed, moving], axis=1), lashes, iris

    def _opening(self) -> Value:
        """[1, 1, EYE] where the ball shows in the photo, as the generator draws it."""
        g = self.g
        apart = g.smoothstep(self.lower - self.upper - 0.4)
        above = g.smoothstep((self.v - self.upper) / EDGE + 0.5)
        return (above * g.smoothstep((self.lower - self.v) / EDGE + 0.5) * apart).unsqueeze(0, 1)

    def _skin(self) -> tuple[Value, Value, Value]:
        """Colour of the closed lids [1, 3, EYE], where it replaces the photo [1, 1, EYE] when they close and always.

        Some of the fold above the lid stays as the eye closes; what is near the lid's edge moves with it.
        """
        g, width = self.g, self.region.width
        top, bottom = self.upper - width * ABOVE, self.lower + width * BELOW
        there = g.smoothstep((self.v - top) / (width * (ABOVE - LASHES_END)))
        there = there * g.smoothstep((bottom - self.v) / (width * BELOW * 0.5))
        there = (there * g.smoothstep((width * 0.66 - self.u.abs()) / (width * 0.14))).unsqueeze(0, 1)
        above = self._skin_along(self.curves.upper, [-reach for reach in SKIN_ABOVE])
        below = self._skin_along(self.curves.lower, SKIN_BELOW)
        above = above + (below - above) * IN_SHADE
        ends = g.concat([(smoothing(6) @ row.transpose(1, 0)).transpose(1, 0) for row in (above, below)], axis=0)
        ends = self.curves.at(ends, 6, self.u)
        down = ((self.v - top) / g.maximum(bottom - top, 1.0)).clip(0, 1)
        down = g.smoothstep((down - 0.35) / 0.65)
        fill = (ends[:, 0:3] + (ends[:, 3:6] - ends[:, 0:3]) * down) * self._round()
        higher = ((self.upper - self.v) / width).unsqueeze(0, 1)
        moving = there * (1 - g.smoothstep((higher - LASHES) / (LASHES_END - LASHES)))
        closed = there * (1 - g.smoothstep((higher - LASHES_END) / 0.04) * CREASE)
        return fill + self._grain(), closed, moving

    def _round(self) -> Value:
        """[EYE] light on a closed lid: more in the middle, where it bulges over the eyeball, less towards its rim."""
        height = ((self.v - self.upper) / self.g.maximum(self.lower - self.upper, 1.0)).clip(0, 1)
        across = (self.u / (self.region.width * 0.5)).clip(-1, 1)
        return (1 - across * across) * (height * (1 - height)) * BULGE + 0.97

    def _grain(self) -> Value:
        """[1, 3, EYE] how the skin below the eye differs from its own mean around; none high above the lid."""
        lid = self.g.smoothstep((self.v - self.upper) / (self.region.width * 0.06) + 2.7)
        skin = self._window(self.g.op("Round", self.region.width * GRAIN_FROM))
        around = self.g.op("AveragePool", skin, kernel_shape=[5, 5], pads=[2, 2, 2, 2])
        grain = (skin - around).clip(-GRAIN, GRAIN)
        energy = self.g.op("AveragePool", (grain * grain).mean(1, keep=True), kernel_shape=[9, 9], pads=[4, 4, 4, 4])
        usual = 1 / (1 / (energy + 1e-6)).mean(2, 3, keep=True)
        return grain * ((2 - energy / (usual * PLAIN)).clip(0, 1) * lid)

    def _skin_along(self, edge: Value, reaches: list[float]) -> Value:
        """[3, 64] the colour of the skin beside a lid: of several rows rather the brighter, which are no crease."""
        colours = self._rows(edge, reaches)
        weights = (colours.mean(1, keep=True) * 18).exp()
        return (colours * weights).sum(0) / weights.sum(0)

    def _rows(self, edge: Value, reaches: list[float]) -> Value:
        """[rows, 3, 64] the photo along copies of a lid's edge."""
        rows = []
        for reach in reaches:
            x, y = self.region.frame.pixel(self.curves.u, edge + self.region.width * reach)
            rows.append(sample(self.g, self.image, x.unsqueeze(0), y.unsqueeze(0)).reshape(1, 3, COLUMNS))
        return self.g.concat(rows, axis=0)

    def lash_line(self) -> Value:
        """[1, 1, 64]: see EyeLayers."""
        skin = self._skin_along(self.curves.upper, [-reach for reach in SKIN_ABOVE]).mean(0)
        dark = self._rows(self.curves.upper, LASH_ROWS).mean(1).min(0)
        darker = (1 - dark / (skin + 0.02)).clip(*LASH_DARKNESS)
        return (smoothing(3) @ darker.unsqueeze(1)).reshape(1, 1, COLUMNS)

    def _eyeball(self) -> tuple[Value, Value]:
        """The eyeball without its iris [1, 3, EYE], and the iris [1, 4, EYE].

        Both show the photo inside the opening; near the lids and beyond them, what they hide.
        """
        g, ball = self.g, self.ball
        rim = g.minimum(self.region.width * RIM_OF_LIDS, (self.lower - self.upper).clip(1, None) * 0.33)
        seen = g.smoothstep((self.v - self.upper) / rim) * g.smoothstep((self.lower - self.v) / (rim * 0.6))
        seen = (seen * g.smoothstep((self.region.width * 0.5 - self.u.abs()) / 3)).unsqueeze(0, 1)
        coverage = 1 - g.smoothstep((ball.distance(self.u, self.v) - RIM) / (RIM_ENDS - RIM))
        coverage = coverage.unsqueeze(0, 1)
        white = ball.white(self.u, self.v, EYE.height, EYE.width)
        plain = white + (self.photo - white) * (seen * (1 - coverage))
        hidden = ball.iris(self.u, self.v)
        hidden = hidden * coverage + plain * (1 - coverage)
        whole = hidden + (self.photo - hidden) * seen
        return plain, g.concat([whole - plain * (1 - coverage), coverage], axis=1)

    def edges(self) -> Value:
        """[2, 64] the tables of the upper and of the lower edge."""
        return self.g.concat([self.curves.upper.unsqueeze(0), self.curves.lower.unsqueeze(0)], axis=0)

    def frame(self) -> Value:
        """[1, 4, 2] the eye's axes; see EyeLayers.frames."""
        g, frame, reach = self.g, self.region.frame, self.curves.reach
        u, v = frame.local(self.corner[0], self.corner[1])
        rows = [(frame.cos / reach, -frame.sin), (frame.sin / reach, frame.cos), (u / reach, v)]
        flat = [part.reshape(1) for row in rows for part in row]
        return g.concat([*flat, self.corner], axis=0).reshape(1, 4, 2)


_PARTS = [field.name for field in fields(EyeLayers)]


def eye_layers(g: Graph, image: Value, points: Value, regions: list[EyeRegion]) -> EyeLayers:
    """The layers of both eyes for an image [1, 3, 512, 512] and its points [478, 3] in pixels."""
    parts: dict[str, list[Value]] = {name: [] for name in _PARTS}
    for eye, region in zip(EYES, regions, strict=True):
        textures = EyeTextures(g, image, points, eye, region)
        still, lashes, irises = textures.layers()
        parts["still"].append(still)
        parts["lashes"].append(lashes)
        parts["irises"].append(irises)
        parts["frames"].append(textures.frame())
        parts["edges"].append(textures.edges().unsqueeze(0))
        parts["motion"].append(textures.curves.motion().unsqueeze(0))
        parts["lash_line"].append(textures.lash_line())
    return EyeLayers(**{name: g.concat(values, axis=0) for name, values in parts.items()})
