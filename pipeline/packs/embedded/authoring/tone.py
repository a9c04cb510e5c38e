"""The light of a portrait, as far as it can be told from skin and eyes."""

from __future__ import annotations

import numpy as np

from .anatomy import CHEEKS, EYES
from .windows import CROP
from .writer import Graph, Value

SKIN = np.array([0.80, 0.62, 0.54], np.float32)
"""Cheek colour under the light of an average portrait, in which reference colours are given."""

SKIN_MEAN, WHITE_MEAN = 0.65, 0.72
"""Mean of RGB of a pale cheek and of the white of an eye under that light."""


class Tone:
    """Turns a reference colour into the portrait's light: brightness, tint, and saturation."""

    def __init__(self, g: Graph, image: Value, points: Value) -> None:
        self._image = image
        self._x, self._y = g.constant(CROP.columns()), g.constant(CROP.rows())
        spots = [self._spot(points[cheek, 0:2], 12.0) for cheek in CHEEKS]
        skin = self._mean(spots[0] + spots[1] + spots[2] + spots[3])
        mean = skin.mean(0) + 1e-3
        chroma = skin.max(0) - skin.min(0)
        tint = (skin / mean / (SKIN / SKIN.mean())).clip(0.6, 1.5)
        self.tint = ((tint - 1) * (chroma / 0.15).clip(0, 1) + 1) ** 0.4
        self.redness = (skin[0] - skin[1]) / (skin[0] + 0.05)
        # Pale skin is no sign of pale light; a picture without colours is.
        self.saturation = (chroma / 0.11).clip(0, 1)
        # Dark skin says little about the light: the brightest white of the eyes counts where it tells of more.
        whites = []
        for eye in EYES:
            iris, corners = points.take(eye.iris), points.take(eye.corners)
            for rim, corner in ((iris[1:5, 0].min(0), corners[0]), (iris[1:5, 0].max(0), corners[1])):
                x = rim * 0.55 + corner[0] * 0.45
                y = iris[0, 1] * 0.7 + corner[1] * 0.3
                whites.append(self._mean(self._spot(g.concat([x.reshape(1), y.reshape(1)], axis=0), 1.5)).mean(0))
        white = g.maximum(*whites) / WHITE_MEAN
        by_skin = mean / SKIN_MEAN
        self.brightness = g.maximum(by_skin, g.minimum(white, by_skin * 1.8)).clip(0.35, 1.0)

    def _spot(self, centre: Value, radius: float) -> Value:
        """[512, 512] bell about a point [2]."""
        dx, dy = self._x - centre[0], self._y - centre[1]
        return ((dx * dx + dy * dy) * (-1 / (2 * radius**2))).exp()

    def _mean(self, weight: Value) -> Value:
        """[3] weighted mean colour."""
        return (self._image[0] * weight).sum(1, 2) / (weight.sum(0, 1) + 1e-3)

    def __call__(self, colour: tuple[int, int, int]) -> Value:
        """[3, 1, 1] RGB 0..1 of a colour given in 0..255 under the average light."""
        reference = np.array(colour, np.float32) / 255
        grey = float(reference.mean())
        return ((self.saturation * (reference - grey) + grey) * self.tint * self.brightness).clip(0, 1).reshape(3, 1, 1)
