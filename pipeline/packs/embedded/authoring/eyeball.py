"""The ball of an eye: where its iris is, its white all over, and its whole iris, as graph expressions."""

from __future__ import annotations

import itertools

import numpy as np

from .lid_curves import LidCurves
from .regions import EyeRegion
from .sampling import sample
from .writer import Graph, Value

ACROSS, HEIGHTS = 27, 9
"""Samples of the opening along the eye, and from the upper to the lower lid at each place."""

SHIFTS_U, SHIFTS_V = np.linspace(-0.24, 0.24, 25), np.linspace(-0.12, 0.12, 9)
SCALES = [0.85, 1.0, 1.15, 1.3, 1.5]
"""Where the iris is looked for about its landmarks, widths of the eye, and radii relative to theirs."""

PRIOR_U, PRIOR_V, PRIOR_SCALE, SHARPNESS = 0.36, 0.16, 0.7, 45.0
"""Shifts and logarithm of the scale that cost as much as all of the eye's contrast; softmax over contrast."""

RIM, RIM_ENDS = 1.04, 1.22
"""Radii of the iris up to which all belongs to it, and from where on nothing does."""

SPREAD = 0.12
"""Distance over which samples of the white blend, widths of the eye."""

CORNER, CORNER_SHADE = 0.34, 0.6
"""From where on (widths of the eye from its middle) the white lies in the shade of a corner, and how dark that is."""

HIDDEN_WHITE = 0.97
"""Light on the white that iris and lids hide, to that on the brighter of what they show."""

FAR, FAR_SHADE = 0.4, 0.25
"""White so far (widths of the eye) from all that the photo shows of it is on the side that turns away from the light,
or from the viewer: how dark."""

RADII, ANGLES = 14, 24
"""Samples of the iris for its mean colour by radius."""


class Eyeball:
    """Samples of what an eye's opening shows, and what they tell of the ball.

    Places are u, v of the eye's frame in pixels.
    """

    def __init__(self, g: Graph, image: Value, curves: LidCurves, region: EyeRegion, iris: Value) -> None:
        """`iris` [5, 2]: landmarks of its centre and rim, pixels."""
        self.g, self.image, self.curves, self.region = g, image, curves, region
        width = region.width
        across = ((np.arange(ACROSS) * 2 + 1) / ACROSS - 1) * 0.48
        self.u = (g.constant(across[:, None]) * width).expand(ACROSS, HEIGHTS)
        upper, lower = self._edges(self.u)
        parts = g.constant(np.linspace(0.16, 0.84, HEIGHTS)[None])
        self.v = upper + (lower - upper) * parts
        self.weight = ((lower - upper) / width).clip(0, None).reshape(1, -1)
        """[1, samples] share of the opening that each stands for."""
        self.colours = self.at(self.u, self.v).reshape(3, -1)
        self.light = self.colours.min(0, keep=True)
        """[1, samples] the least of the three colours: low where an iris is, be it dark or blue, high in the white."""
        self.u, self.v = self.u.reshape(1, -1), self.v.reshape(1, -1)
        centre_u, centre_v = (part[0] for part in region.frame.local_points(iris[0:1]))
        rim = iris.take([1, 2, 3, 4]) - iris[0:1]
        self.iris_u, self.iris_v, self.radius = self._fitted(centre_u, centre_v, (rim * rim).sum(1).sqrt().mean(0))

    def _edges(self, u: Value) -> tuple[Value, Value]:
        tables = self.g.concat([self.curves.upper.unsqueeze(0), self.curves.lower.unsqueeze(0)], axis=0)
        edges = self.curves.at(tables, 2, u)
        return edges[0, 0], edges[0, 1]

    def at(self, u: Value, v: Value) -> Value:
        """The photo's colours at places of the eye's frame, as `sample` gives them."""
        return sample(self.g, self.image, *self.region.frame.pixel(u, v))

    def _fitted(self, u: Value, v: Value, radius: Value) -> tuple[Value, Value, Value]:
        """Centre and radius by the contrast between disc and ring: landmarks put the irises of averted eyes too near
        to the middle. Candidates are weighed by a softmax, near ones preferred."""
        g, width = self.g, self.region.width
        tried = np.array(list(itertools.product(SHIFTS_U, SHIFTS_V, SCALES)))
        at_u, at_v = u + width * g.constant(tried[:, 0:1]), v + width * g.constant(tried[:, 1:2])
        reach = radius * g.constant(tried[:, 2:3])
        du, dv = self.u - at_u, self.v - at_v
        distance = (du * du + dv * dv).sqrt() / reach
        disc = ((1 - distance) * 6 + 0.5).clip(0, 1) * self.weight
        ring = ((distance - 1) * 6 + 0.5).clip(0, 1) * ((1.7 - distance) * 4).clip(0, 1) * self.weight
        from_u, from_v = self.u - u, self.v - v
        own = (((from_u * from_u + from_v * from_v).sqrt() < radius).cast() + 1e-3) * self.weight
        dark = (own * self.light).sum(1, keep=True) / own.sum(1, keep=True)
        light = g.maximum(self.light, dark * 0.8)  # what is darker is lash and corner
        span = light.max(1, keep=True) - dark * 0.8 + 0.08
        few = self.weight.sum(1, keep=True) * 0.03

        def mean(weights: Value) -> Value:
            return (weights * light).sum(1, keep=True) / (weights.sum(1, keep=True) + few)

        def bare(weights: Value) -> Value:
            return weights.sum(1, keep=True) / (weights.sum(1, keep=True) + few)

        middle = (light * self.weight).sum(1, keep=True) / self.weight.sum(1, keep=True)
        contrast = (mean(ring) - middle * bare(ring) - mean(disc) + middle * bare(disc)) / span
        prior = (tried[:, 0] / PRIOR_U) ** 2 + (tried[:, 1] / PRIOR_V) ** 2 + (np.log(tried[:, 2]) / PRIOR_SCALE) ** 2
        score = (contrast - g.constant(prior[:, None])) * SHARPNESS
        weights = (score - score.max(0, keep=True)).exp()
        weights = weights / weights.sum(0, keep=True)
        shift = (weights * g.constant(tried)).sum(0)
        return u + width * shift[0], v + width * shift[1], radius * shift[2]

    def distance(self, u: Value, v: Value) -> Value:
        """Distance from the iris' centre in its radii."""
        du, dv = u - self.iris_u, v - self.iris_v
        return (du * du + dv * dv + 1e-6).sqrt() / self.radius

    def white(self, u: Value, v: Value, height: int, width: int) -> Value:
        """[1, 3, height, width] the white of the eye at places [height, width]: the samples around that are not iris,
        the brighter and the paler rather, so that neither lashes nor the corner's flesh count."""
        g = self.g
        outside = ((self.distance(self.u, self.v) - 1.1) * 4).clip(0, 1)
        low, high = self.colours.min(0, keep=True), self.colours.max(0, keep=True)
        colourful = (high - low) / (high + 0.02)
        bright = (self.light * (outside + 1e-3).clip(0, 1)).max(1, keep=True)
        weight = (g.minimum(self.light, bright) / (bright + 0.02) * 9 - colourful * 4).exp()
        weight = weight * (outside + 1e-5) * (self.weight + 1e-4)
        across = (u.reshape(-1, 1) - self.u) / self.region.width
        down = (v.reshape(-1, 1) - self.v) / self.region.width
        near = 1 / (across * across + down * down + SPREAD * SPREAD)
        shares = near * near * weight
        total = shares.sum(1, keep=True)
        found = (shares @ self.colours.transpose(1, 0)) / total
        away = (total / (shares * near).sum(1, keep=True)).sqrt() - SPREAD
        far = g.smoothstep(away * (1 / FAR)).reshape(height, width) * FAR_SHADE
        corner = g.smoothstep((u.abs() / self.region.width - CORNER) / (0.5 - CORNER)) * CORNER_SHADE
        return found.transpose(1, 0).reshape(1, 3, height, width) * ((1 - corner) * (1 - far) * HIDDEN_WHITE).unsqueeze(
            0, 1
        )

    def iris(self, u: Value, v: Value) -> Value:
        """[1, 3, height, width] the mean colour of the iris by distance from its centre: what lids hide of it."""
        g = self.g
        radii = (np.arange(RADII) + 0.5) / RADII * RIM_ENDS
        angle = [2 * np.pi * k / ANGLES for k in range(ANGLES)]
        ring = np.round(np.array([[np.cos(a), np.sin(a)] for a in angle]), 6)
        at_u = self.iris_u + self.radius * g.constant(radii[:, None] * ring[:, 0])
        at_v = self.iris_v + self.radius * g.constant(radii[:, None] * ring[:, 1])
        upper, lower = self._edges(at_u)
        free = g.minimum(at_v - upper, lower - at_v) - 2
        weight = (free / 2).clip(0, 1) + (free / 4 - 2).clip(-30, 0).exp() * 1e-2
        colours = self.at(at_u, at_v).reshape(3, RADII, ANGLES)
        # Reflected light is brighter than the iris: it belongs to one place of the eye, not to a ring of it.
        weight = weight.unsqueeze(0) * (colours.mean(0, keep=True) * -4).exp()
        profile = (colours * weight).sum(2) / weight.sum(2)
        place = (self.distance(u, v) / RIM_ENDS * 2 - 1).unsqueeze(0, 3)
        places = g.concat([place, place * 0], axis=3)
        return g.op("GridSample", profile.reshape(1, 3, 1, RADII), places, mode="linear", padding_mode="border",
                    align_corners=0)  # fmt: skip
