"""The visemes: thirteen shapes of the mouth, what sounds have them, and how a motion is read back.

They are fixed before anything is trained: targets are mixtures of them, and a motion says the viseme
whose shape its lips are nearest to.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .anatomy import LOWER_INNER, MOUTH_CORNERS, NEUTRAL, UNIT_OFFSETS, UNITS, UPPER_INNER
from .expression import both, coefficients

Floats = NDArray[np.floating[Any]]

SHAPES: dict[str, dict[str, float]] = {
    "silence": {},
    "p b m": {**both("mouthPress", 0.26), "mouthRollLower": 0.2, "mouthRollUpper": 0.12},
    "f v": {"jawOpen": 0.08, "mouthRollLower": 0.62, **both("mouthUpperUp", 0.36)},
    "th": {"jawOpen": 0.12, "tongueOut": 0.5, **both("mouthLowerDown", 0.15), **both("mouthUpperUp", 0.16)},
    "t d": {"jawOpen": 0.08, **both("mouthLowerDown", 0.38), **both("mouthUpperUp", 0.05)},
    "k g": {"jawOpen": 0.22, **both("mouthUpperUp", 0.2), **both("mouthDimple", 0.05)},
    "s z sh": {"jawOpen": 0.05, "jawForward": 0.35, "mouthFunnel": 0.16, **both("mouthLowerDown", 0.46),
               **both("mouthUpperUp", 0.36)},
    "r l": {"jawOpen": 0.14, "mouthFunnel": 0.34, "mouthPucker": 0.2, "mouthShrugLower": 0.3},
    "aa": {"jawOpen": 0.5, **both("mouthLowerDown", 0.3), **both("mouthUpperUp", 0.2)},
    "eh": {"jawOpen": 0.3, **both("mouthDimple", 0.25), **both("mouthStretch", 0.14), **both("mouthLowerDown", 0.42),
           **both("mouthUpperUp", 0.2)},
    "iy": {"jawOpen": 0.09, **both("mouthStretch", 0.4), **both("mouthLowerDown", 0.42),
           **both("mouthUpperUp", 0.28), **both("mouthSmile", 0.24)},
    "ao": {"jawOpen": 0.36, "mouthFunnel": 0.6, "mouthPucker": 0.4, **both("mouthSmile", -0.15)},
    "uw": {"jawOpen": 0.08, "mouthPucker": 0.9, "mouthFunnel": 0.3, **both("mouthSmile", -0.3)},
}  # fmt: skip
"""Class -> coefficients of its shape. The order is that of the encoder's classes."""

CLASSES = tuple(SHAPES)

SILENCE, CLOSED, LABIODENTAL = (CLASSES.index(name) for name in ("silence", "p b m", "f v"))

TEMPLATES = coefficients(SHAPES.values())
"""[13, 52]."""

CLOSED_GAP = 0.03
"""Lips are closed whose inner edges are nearer than this part of the mouth's width."""

_WIDTH = float(np.linalg.norm(NEUTRAL[MOUTH_CORNERS[1]] - NEUTRAL[MOUTH_CORNERS[0]]))
_MIDDLE = len(UPPER_INNER) // 2
_GAP = (UNIT_OFFSETS[:, LOWER_INNER[_MIDDLE], 1] - UNIT_OFFSETS[:, UPPER_INNER[_MIDDLE], 1]) / _WIDTH


def lip_gap(expression: Floats) -> Floats:
    """[N, 52] coefficients -> [N] distance of the middles of the inner lips, in widths of the mouth.

    0 is the mouth at rest, which the renderer closes; lips pressed together are not below it.
    """
    return np.maximum(expression @ _GAP, 0)


def nearest_viseme(expression: Floats) -> NDArray[np.intp]:
    """[N, 52] coefficients -> [N] indices into CLASSES, by distance in the coefficients of lips, jaw and tongue."""
    lips = [i for i, name in enumerate(UNITS) if name.startswith(("jaw", "mouth", "tongue"))]
    differences = expression[:, None, lips] - TEMPLATES[:, lips]
    return (differences**2).sum(2).argmin(1)
