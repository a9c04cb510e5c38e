"""What a moving eye consists of: the skin of its closed lids, its lashes, the white of the eye, the iris.

Every texture covers a window of the crop about the eye. Where nothing moves they add up to the photo.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

from .anatomy import EYES, Eye
from .closed_lid import ClosedLid
from .eye_window import EyeWindow
from .eyeball import RIM, RIM_ENDS, Eyeball
from .lid_curves import LidCurves
from .regions import EyeRegion
from .windows import EYE
from .writer import Graph, Value

EDGE = 1.5
"""Pixels of 512 over which a lid's edge passes into the eyeball."""

RIM_OF_LIDS = 0.09
"""How far inside the opening what is not the ball's own (lashes, the lids' shade) moves with them, widths of the eye;
at most the third part of the opening."""


def irises_as_colour(dense: Value) -> Value:
    """Densified irises, which overshoot 0..1 at their edges, as 0..255 in 255ths: -0.2 to 1.075, 40 is nothing."""
    return dense * (200 / 255) + 40 / 255


def irises_as_drawn(colour: Value) -> Value:
    """The same as 255ths from 0..255."""
    return (colour - 40) * (255 / 200)


def lashes_as_colour(added: Value) -> Value:
    """What lashes add, -1..1, as 1..255 in 255ths: 128 adds nothing."""
    return added * (127 / 255) + 128 / 255


def lashes_as_added(colour: Value) -> Value:
    """The same as 255ths from 0..255."""
    return (colour - 128) * (255 / 127)


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
    """[2, 2, 64] how much darker than skin the line of the upper lid's lashes is, 0..1, and the lashes that stand off
    it, each column for itself."""


class EyeTextures:
    """The textures of one eye."""

    def __init__(self, g: Graph, image: Value, points: Value, eye: Eye, region: EyeRegion) -> None:
        self.g, self.region = g, region
        self.curves = LidCurves(g, image, region)
        self.window = EyeWindow(g, image, region)
        self.u, self.v, self.photo = self.window.u, self.window.v, self.window.photo
        edges = self.curves.at(self.edges(), 2, self.u)
        self.upper, self.lower = edges[0, 0], edges[0, 1]
        self.lid = ClosedLid(self.window, self.curves, self.upper, self.lower)
        self.ball = Eyeball(g, image, self.curves, region, points.take(eye.iris)[:, 0:2])

    def layers(self) -> tuple[Value, Value, Value]:
        """[1, 8, EYE], [1, 3, EYE], [1, 4, EYE]: see EyeLayers."""
        g = self.g
        skin, closed, moving = self.lid.skin()
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

    def _eyeball(self) -> tuple[Value, Value]:
        """The eyeball without its iris [1, 3, EYE], and the iris [1, 4, EYE].

        Both show the photo inside the opening; near the lids and beyond them, what they hide.
        """
        g, ball = self.g, self.ball
        rim = g.minimum(self.region.width * RIM_OF_LIDS, (self.lower - self.upper).clip(1, None) * 0.33)
        seen = g.smoothstep((self.v - self.upper) / rim) * g.smoothstep((self.lower - self.v) / rim - 0.25)
        seen = (seen * g.smoothstep((self.region.width * 0.5 - self.u.abs()) / (self.region.width * 0.1))).unsqueeze(
            0, 1
        )
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


_PARTS = [field.name for field in fields(EyeLayers)]


def eye_layers(g: Graph, image: Value, points: Value, regions: list[EyeRegion]) -> EyeLayers:
    """The layers of both eyes for an image [1, 3, 512, 512] and its points [478, 3] in pixels."""
    parts: dict[str, list[Value]] = {name: [] for name in _PARTS}
    for eye, region, inner in zip(EYES, regions, (1, -1), strict=True):
        textures = EyeTextures(g, image, points, eye, region)
        still, lashes, irises = textures.layers()
        parts["still"].append(still)
        parts["lashes"].append(lashes)
        parts["irises"].append(irises)
        parts["frames"].append(textures.window.frame(textures.curves.reach))
        parts["edges"].append(textures.edges().unsqueeze(0))
        parts["motion"].append(textures.curves.motion().unsqueeze(0))
        parts["lash_line"].append(textures.lid.lash_line(inner))
    return EyeLayers(**{name: g.concat(values, axis=0) for name, values in parts.items()})
