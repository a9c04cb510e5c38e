"""What is the person in a portrait, and what stands behind: a soft coverage, and the background carried on behind.

The generator lays the moving person over the still background: frame = person(b) + (1 - alpha(b)) * background, where b
is the head's backward map. `person` is what the photo has beyond the background that shines through, so that the photo
returns at rest however coarse the coverage is. Lengths are pixels of 512.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import onnx

from .anatomy import MESH_POINTS
from .background_fill import COARSE, FINE, HALF, enlarged_to, grain, mean, rounded, spread
from .head_motion import Outline
from .sampling import highest, pool
from .stray_hair import REACH, stray_hair
from .writer import Graph, Value

SEGMENTER = Path(__file__).parent / "data" / "selfie_segmentation.onnx"

FOUND = (0.7, 0.85)
"""Mean coverage of the face's landmarks below which the segmenter has not seen the person, and from which it has."""

EDGE_RADIUS, EDGE_VARIANCE = 4, 4e-4
"""Of the guided filter, in pixels of HALF and squares of the brightness 0..1."""

CERTAIN = (0.06, 0.94)
"""Filtered coverage up to which there is background alone, and from which there is the person alone."""

NEAR, AROUND = 1, 5
"""Pixels of HALF about the person where the photo is not taken for background, and where it is not when it looks
unlike what is farther out: stray hair."""

UNLIKE = (1.5, 5.0)
"""Squared distances from the background's mean colour, in variances of it, from which a colour is unlike it, and from
which it is something else."""

GRAIN = 1e-4
"""Least variance of a background, sum over the channels, 0..1."""

UNSURE = (0.02, 0.2)
"""Coverage from which a place counts as the person's there, by and by."""

CLIPPED = 1.5 / 255
"""How much darker than what shines through the photo may be."""


@dataclass(frozen=True)
class Matte:
    found: Value
    """[] 1 where the segmenter saw the person whose face it is; 0: all is taken for the person, as if in front of
    nothing."""
    alpha: Value
    """[1, 1, 256, 256] coverage by the person, in 255ths."""
    background: Value
    """[1, 3, 512, 512] the photo where nobody stands, and smooth colours behind the person; 0..1, in 255ths."""

    def person(self, layer: Value) -> Value:
        """A layer [1, 3, 512, 512] less the background that shines through it."""
        through = enlarged_to(1 - self.alpha, 1)
        return (layer - through * self.background).clip(0, 1)


def matte(g: Graph, image: Value, points: Value) -> Matte:
    """The matte of a photo [1, 3, 512, 512] with the face's landmarks [478, 3] in pixels."""
    small = pool(image, 2)
    seen = g.splice(_segmenter(), small)
    found = _face_covered(g, seen, points)
    coverage = _along_edges(g, seen, small)
    low, high = CERTAIN
    coverage = g.smoothstep((coverage - low) / (high - low))
    about = enlarged_to(_about(g, coverage, AROUND), 1)
    person = _about(g, coverage, NEAR)
    covered = enlarged_to(person, 1)
    hidden = g.maximum(covered, _unlike(g, image, about) * about)
    hidden = g.maximum(hidden, stray_hair(g, image, person, _about(g, coverage, REACH), hidden, points))
    fill = spread(g, image, 3, hidden, FINE) + grain(g, image, g.maximum(hidden, about))
    background = rounded(image + (fill - image) * hidden)
    # What is darker than the background behind it must cover some of it.
    darker = ((background - image - CLIPPED) / (background + 1e-3)).max(1, keep=True).clip(0, 1)
    least = g.op("MaxPool", darker, kernel_shape=[4, 4], strides=[2, 2], pads=[1, 1, 1, 1])
    alpha = g.maximum(coverage, least, _inside_face(g, points))
    return Matte(found, rounded(1 - (1 - alpha) * found), background)


@cache
def _segmenter() -> onnx.ModelProto:
    return onnx.load(SEGMENTER)


def _face_covered(g: Graph, seen: Value, points: Value) -> Value:
    at = points[:MESH_POINTS, 0:2] * 0.5 - 0.25
    places = ((at + 0.5) * (2 / HALF) - 1).reshape(1, 1, MESH_POINTS, 2)
    covered = g.op("GridSample", seen, places, mode="linear", padding_mode="border", align_corners=0).mean(0, 1, 2, 3)
    none, all_ = FOUND
    return g.smoothstep((covered - none) / (all_ - none))


def _along_edges(g: Graph, seen: Value, small: Value) -> Value:
    """The coverage with the edges of the picture: a guided filter (He, Sun, Tang, "Guided Image Filtering", 2010)."""
    guide = (small * np.array([0.299, 0.587, 0.114]).reshape(1, 3, 1, 1)).sum(1, keep=True)
    both = mean(g.concat([guide, seen, guide * guide, guide * seen], axis=1), EDGE_RADIUS)
    light, part, squares, products = (both[:, i : i + 1] for i in range(4))
    slope = (products - light * part) / (squares - light * light + EDGE_VARIANCE)
    fit = mean(g.concat([slope, part - slope * light], axis=1), EDGE_RADIUS)
    return fit[:, 0:1] * guide + fit[:, 1:2]


def _about(g: Graph, coverage: Value, reach: int) -> Value:
    """[1, 1, 256, 256] 1 where the person is, and so many pixels of HALF around."""
    near = highest(coverage, 2 * reach + 1)
    low, high = UNSURE
    return mean(g.smoothstep((near - low) / (high - low)), 1)


def _unlike(g: Graph, image: Value, hidden: Value) -> Value:
    """[1, 1, 512, 512] 1 where the photo has colours that the background around, where it is not hidden, has not."""
    shown = 1 - hidden
    sums = mean(pool(pool(g.concat([image * shown, shown], axis=1), 2), 2), 4)
    varies = image - enlarged_to(sums[:, 0:3] / (sums[:, 3:4] + 1e-4), 3)
    variance = spread(g, (varies * varies).sum(1, keep=True), 1, hidden, COARSE)
    away = image - spread(g, image, 3, hidden, FINE)
    away = (away * away).sum(1, keep=True)
    low, high = UNLIKE
    return mean(g.smoothstep((away / (variance + GRAIN) - low) / (high - low)), 1)


def _inside_face(g: Graph, points: Value) -> Value:
    """[1, 1, 256, 256] 1 well inside the face, whatever the segmenter says: glasses and painted cheeks."""
    outline = Outline(points)
    axis = np.arange(HALF, dtype=np.float32) * 2 + 0.5
    x = (g.constant(axis[None, :]) - outline.centre[0]) / outline.half[0]
    y = (g.constant(axis[:, None]) - outline.centre[1]) / outline.half[1]
    return (1 - g.smoothstep(((x * x + y * y).sqrt() - 0.75) / 0.2)).unsqueeze(0, 1)
