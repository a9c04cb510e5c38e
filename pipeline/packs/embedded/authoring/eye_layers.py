"""What a moving eye consists of: the skin of its closed lids, its lashes, the white of the eye, the iris.

Every texture covers a window of the crop about the eye. Where nothing moves they add up to the photo.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from onnx import TensorProto

from .anatomy import EYES, Eye
from .lid_curves import COLUMNS, LidCurves, smoothing
from .regions import EyeRegion
from .sampling import sample
from .windows import EYE, SIZE
from .writer import Graph, Value

ABOVE, BELOW = 0.28, 0.08
"""How far beyond the edges of the upper and the lower lid the skin of a closed lid reaches, widths of the eye."""

LASHES, LASHES_END = 0.04, 0.10
"""Up to where above its edge all that is not skin moves with the upper lid, and from where on nothing does."""

SKIN_ROWS = [0.14, 0.18, 0.22, 0.26]
"""Where above the upper lid's edge the colour of the closed lid is taken, widths of the eye."""

BESIDE_IRIS, HEIGHTS = [1.3, 1.45, 1.6], [0.35, 0.5, 0.65]
"""Where the white of the eye is looked for: radii from the iris' centre, parts of the height of the opening."""

IN_SHADE = 0.55
"""How much of its colour a closed lid has from below the eye: above it, the brow casts a shadow that the lid, which
bulges, does not get."""

BULGE = 0.5
"""Of the light on a closed lid, a quarter of which is added in its middle."""

IRIS_REACH = 1.32
"""Radius beyond which nothing belongs to the iris, in radii of the landmarks."""


@dataclass(frozen=True)
class EyeLayers:
    still: Value
    """[2, 8, EYE] colour of the closed lids' skin, of the eyeball without iris, 1 where that skin replaces the photo
    in a closed eye, and 1 where it does so in every eye, with lashes on it."""
    lashes: Value
    """[2, 3, EYE] what lashes and lid edges add to that skin; moves with the lids."""
    irises: Value
    """[2, 3, EYE] what the iris adds to the eyeball; moves with the gaze."""
    frames: Value
    """[2, 4, 2] rows: what u (half tables) and v (pixels) gain per pixel of x, per pixel of y, u and v at the
    window's corner, x and y of that corner in pixels of the crop."""
    edges: Value
    """[2, 2, 64] v of the upper and of the lower lid's edge."""
    motion: Value
    """[2, 2, 64, 7] what each lid landmark's motion adds to them."""


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
        start = self.corner.take([1, 0]).cast(TensorProto.INT64)
        photo = g.op("Slice", image, start, start + size[::-1].astype(np.int64), np.array([2, 3]))
        self.photo = photo.reshape(1, 3, EYE.height, EYE.width)
        edges = self.curves.at(self.edges(), 2, self.u)
        self.upper, self.lower = edges[0, 0], edges[0, 1]
        iris = points.take(eye.iris)[:, 0:2]
        self.iris_u, self.iris_v = (part[0] for part in region.frame.local_points(iris[0:1]))
        rim = iris.take([1, 3]) - iris[0:1]
        self.radius = (rim * rim).sum(1).sqrt().mean(0)

    def skin(self) -> tuple[Value, Value, Value]:
        """Colour of the closed lids [1, 3, EYE], where it replaces the photo [1, 2, EYE], the lashes [1, 3, EYE].

        The fold above the lid is replaced as the eye closes; what is near the lid's edge moves with it.
        """
        g, width = self.g, self.region.width
        top, bottom = self.upper - width * ABOVE, self.lower + width * BELOW
        there = g.smoothstep((self.v - top) / (width * (ABOVE - LASHES_END)))
        there = there * g.smoothstep((bottom - self.v) / (width * BELOW * 0.5))
        there = (there * g.smoothstep((width * 0.66 - self.u.abs()) / (width * 0.14))).unsqueeze(0, 1)
        above, below = self._rows_above(), self._row(self.curves.lower + width * BELOW)
        above = above + (below - above) * IN_SHADE
        ends = g.concat([(smoothing(6) @ row.transpose(1, 0)).transpose(1, 0) for row in (above, below)], axis=0)
        ends = self.curves.at(ends, 6, self.u)
        down = ((self.v - top) / g.maximum(bottom - top, 1.0)).clip(0, 1)
        down = g.smoothstep((down - 0.35) / 0.65)
        fill = (ends[:, 0:3] + (ends[:, 3:6] - ends[:, 0:3]) * down) * self._round()
        moving = there * (1 - g.smoothstep((self.upper - self.v - width * LASHES) / (width * (LASHES_END - LASHES))))
        skin = fill
        inner_upper, inner_lower = self.upper + 0.7, self.lower - 0.7
        at = g.where(self.v - self.upper < self.lower - self.v, g.minimum(self.v, inner_upper),
                     g.maximum(self.v, inner_lower))  # fmt: skip
        lashes = (sample(g, self.image, *self.region.frame.pixel(self.u, at)) - skin) * moving
        return skin, g.concat([there, moving], axis=1), lashes

    def _round(self) -> Value:
        """[EYE] light on a closed lid: more in the middle, where it bulges over the eyeball, less towards its rim."""
        height = ((self.v - self.upper) / self.g.maximum(self.lower - self.upper, 1.0)).clip(0, 1)
        across = (self.u / (self.region.width * 0.5)).clip(-1, 1)
        return (1 - across * across) * (height * (1 - height)) * BULGE + 0.97

    def _row(self, v: Value) -> Value:
        """[3, 64] the photo along a table of v."""
        x, y = self.region.frame.pixel(self.curves.u, v)
        return sample(self.g, self.image, x.unsqueeze(0), y.unsqueeze(0)).reshape(3, COLUMNS)

    def _rows_above(self) -> Value:
        """[3, 64] the colour of the skin above the lid: of several rows rather the brighter, which are no crease."""
        rows = [self._row(self.curves.upper - self.region.width * reach).unsqueeze(0) for reach in SKIN_ROWS]
        colours = self.g.concat(rows, axis=0)
        weights = (colours.mean(1, keep=True) * 18).exp()
        return (colours * weights).sum(0) / weights.sum(0)

    def eyeball(self) -> tuple[Value, Value]:
        """The eyeball without its iris [1, 3, EYE], and what the iris adds to it [1, 3, EYE]."""
        g = self.g
        from_iris_u, from_iris_v = self.u - self.iris_u, self.v - self.iris_v
        distance = (from_iris_u * from_iris_u + from_iris_v * from_iris_v + 1e-6).sqrt() / self.radius
        near = 1 - g.smoothstep((distance - 1.12) / (IRIS_REACH - 1.12))

        # Hidden parts of the iris continue it at the same distance from its centre.
        v = self._inside(self.u, self.v)
        rise = v - self.iris_v
        across = ((distance * self.radius) * (distance * self.radius) - rise * rise).clip(0, None).sqrt()
        turned = g.where(from_iris_u < 0.0, -across, across) + self.iris_u
        u = self.u + (turned - self.u) * near
        whole = self._at(u, self._inside(u, v))
        whole = g.where(((self.v - v).abs() > 0.0).unsqueeze(0, 1), whole, self.photo)

        white = self._white()
        near = near.unsqueeze(0, 1)
        ball = whole + (white - whole) * near
        return ball, whole - ball

    def _white(self) -> Value:
        """[1, 3, EYE] the white of the eye where the iris is: from its brighter parts to the left and to the right."""
        g, half = self.g, self.region.width * 0.5
        colours, weights = [], []
        for sign in (-1.0, 1.0):
            beside = self.iris_u + self.radius * (g.constant(np.array(BESIDE_IRIS)) * sign)
            edges = self.curves.at(self.edges(), 2, beside.unsqueeze(0)).reshape(2, len(BESIDE_IRIS), 1)
            heights = g.constant(np.array(HEIGHTS).reshape(1, -1))
            v = edges[0] + (edges[1] - edges[0]) * heights
            seen = self._at(beside.unsqueeze(1) + v * 0, v).reshape(3, -1)
            inside = ((half * 0.96 - beside.abs()) / (half * 0.1)).clip(0, 1).unsqueeze(1) + v * 0
            weight = (seen.mean(0) * 5).exp() * (inside.reshape(-1) + 1e-4)
            colours.append(((seen * weight).sum(1) / weight.sum(0)).reshape(1, 3, 1, 1))
            weights.append(weight.sum(0))
        left = ((self.iris_u + self.radius * 1.3 - self.u) / (self.radius * 2.6)).clip(0, 1)
        left, right = left * weights[0], (1 - left) * weights[1]
        return colours[1] + (colours[0] - colours[1]) * (left / (left + right)).unsqueeze(0, 1)

    def edges(self) -> Value:
        """[2, 64] the tables of the upper and of the lower edge."""
        return self.g.concat([self.curves.upper.unsqueeze(0), self.curves.lower.unsqueeze(0)], axis=0)

    def _inside(self, u: Value, v: Value) -> Value:
        """v held inside the opening at u, a little off the lids."""
        g = self.g
        edges = self.curves.at(self.edges(), 2, u)
        upper, lower = edges[0, 0], edges[0, 1]
        inset = g.minimum((lower - upper) * 0.3, 1.0)
        return g.maximum(g.minimum(v, lower - inset), upper + inset)

    def _at(self, u: Value, v: Value) -> Value:
        return sample(self.g, self.image, *self.region.frame.pixel(u, v))

    def frame(self) -> Value:
        """[1, 4, 2] the eye's axes; see EyeLayers.frames."""
        g, frame, reach = self.g, self.region.frame, self.curves.reach
        u, v = frame.local(self.corner[0], self.corner[1])
        rows = [(frame.cos / reach, -frame.sin), (frame.sin / reach, frame.cos), (u / reach, v)]
        flat = [part.reshape(1) for row in rows for part in row]
        return g.concat([*flat, self.corner], axis=0).reshape(1, 4, 2)


def eye_layers(g: Graph, image: Value, points: Value, regions: list[EyeRegion]) -> EyeLayers:
    """The layers of both eyes for an image [1, 3, 512, 512] and its points [478, 3] in pixels."""
    parts: dict[str, list[Value]] = {name: [] for name in ("still", "lashes", "irises", "frames", "edges", "motion")}
    for eye, region in zip(EYES, regions, strict=True):
        textures = EyeTextures(g, image, points, eye, region)
        skin, there, lashes = textures.skin()
        ball, iris = textures.eyeball()
        curves = textures.curves
        parts["still"].append(g.concat([skin, ball, there], axis=1))
        parts["lashes"].append(lashes)
        parts["irises"].append(iris)
        parts["frames"].append(textures.frame())
        parts["edges"].append(textures.edges().unsqueeze(0))
        parts["motion"].append(curves.motion().unsqueeze(0))
    return EyeLayers(**{name: g.concat(values, axis=0) for name, values in parts.items()})
