"""Lips and brows of the denoiser, as expression coefficients."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .anatomy import UNITS
from .architecture import HEARD, LIPS, LOUDNESS
from .convolutions import residual_blocks
from .expression import both, coefficients
from .visemes import CLASSES, CLOSED, SILENCE, TEMPLATES
from .weights import Weights
from .writer import Graph, Value

SHARPNESS = 1.6
"""Power to which the network's shares are raised: mixtures out of doubt would say neither sound."""

FAINT = 0.03
"""Shares below it are nothing, so that a mouth without a voice is still."""

SHUT_BETWEEN = (0.7, 0.85)
"""Belief in closed lips at which they begin to close, and are closed: the best on voices of flite and a part of
real English that are not the ones of the table (MODEL_CARD.md). The shares of p, b, m do not close them."""

RELUCTANCE = 2.0
"""Taken off the silence's sharpened logit, chosen with them: lips do not rest within a sound, and a short sound by
itself is more often a word than a noise."""

NEVER = 1e4
"""Taken off a logit so that its class has no share."""

WIDTH = ("mouthPucker", "mouthSmile", "mouthStretch", "mouthDimple")
"""First letters of what makes the mouth narrow or wide."""

AT_ONCE = (0.0, 0.0, 1.0, 0.0, 0.0)
INERTIA = {(0.08, 0.22, 0.4, 0.22, 0.08): (*WIDTH, "mouthFunnel"), (0.0, 0.15, 0.7, 0.15, 0.0): ("jaw",)}
"""Shares of the frames around in a coefficient, by the first letters of its name; others move at once. The network
goes from one sound to the next in a frame; lips are rounded and spread again in 150 to 250 ms (Perkell & Matthies
1992), and the jaw has a mass, too."""

KEPT = 0.5
"""Part of its width that the mouth keeps where it closes: the lips of "oop" stay round."""

EFFORT = (0.88, 0.2)
"""Size of the shapes in the softest sound, and what the loudest adds."""

BROW_STEP = 0.07
"""Coefficient of browInnerUp for one unit of the drive."""


def lips(g: Graph, features: Value) -> Value:
    """[2, 110, A] features -> [2, 110, 52] coefficients; another noise has the same lips."""
    weights = Weights(g, "lips")
    x = residual_blocks(weights.conv(features.transpose(0, 2, 1), "first"), weights, LIPS)
    logits = weights.conv(x, "last").transpose(0, 2, 1)
    resting = _of(SILENCE, RELUCTANCE) + _of(CLOSED, NEVER)
    shares = (logits[:, :, : len(CLASSES)] * SHARPNESS - resting).op("Softmax", axis=2)
    shares = (shares - FAINT).clip(0, None)
    shares = shares / shares.sum(2, keep=True)
    begin, end = SHUT_BETWEEN
    shut = ((logits[:, :, len(CLASSES) :].op("Sigmoid") - begin) * (1 / (end - begin))).clip(0, 1)
    effort = features[:, :, LOUDNESS : LOUDNESS + 1] * EFFORT[1] + EFFORT[0]
    heard = features[:, :, HEARD : HEARD + 1]
    width = np.array([name.startswith(WIDTH) for name in UNITS], np.float32)
    asked = shares @ TEMPLATES * effort * (1 - shut * width * (1 - KEPT))
    moved = _with_inertia(g, asked * heard) * (1 - shut * (1 - width))
    return moved + shut * heard * TEMPLATES[CLOSED]


def _with_inertia(g: Graph, asked: Value) -> Value:
    """[2, 110, 52] coefficients -> the same, each as fast as its part of the face can move."""
    kernels = np.tile(np.array(AT_ONCE, np.float32), (len(UNITS), 1, 1))
    for kernel, names in INERTIA.items():
        kernels[[i for i, name in enumerate(UNITS) if name.startswith(names)]] = kernel
    reach = len(AT_ONCE) // 2
    edges = np.array([0, 0, reach, 0, 0, reach], np.int64)
    padded = g.op("Pad", asked.transpose(0, 2, 1), edges, mode="edge")
    return g.op("Conv", padded, kernels, group=len(UNITS)).transpose(0, 2, 1)


def _of(kind: int, value: float) -> NDArray[np.float32]:
    """[13]: the value at a class, 0 at the others."""
    return np.where(np.arange(len(CLASSES)) == kind, np.float32(value), np.float32(0))


def brows(drive: Value) -> Value:
    """Brows that wander a little and rise on accents: [2, 110, 52]."""
    return (drive * BROW_STEP).clip(0, None) @ coefficients([{"browInnerUp": 1.0, **both("browOuterUp", 0.6)}])
