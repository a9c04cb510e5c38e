"""Lips and brows of the denoiser, as expression coefficients."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

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
    shares = (logits[:, :, : len(CLASSES)] * SHARPNESS - resting)._op("Softmax", axis=2)
    shares = (shares - FAINT).clip(0, None)
    shares = shares / shares.sum(2, keep=True)
    begin, end = SHUT_BETWEEN
    shut = ((logits[:, :, len(CLASSES) :]._op("Sigmoid") - begin) * (1 / (end - begin))).clip(0, 1)
    effort = features[:, :, LOUDNESS : LOUDNESS + 1] * EFFORT[1] + EFFORT[0]
    said = shares @ TEMPLATES * effort * (1 - shut) + shut * TEMPLATES[CLOSED]
    return said * features[:, :, HEARD : HEARD + 1]


def _of(kind: int, value: float) -> NDArray[np.float32]:
    """[13]: the value at a class, 0 at the others."""
    return np.where(np.arange(len(CLASSES)) == kind, np.float32(value), np.float32(0))


def brows(drive: Value) -> Value:
    """Brows that wander a little and rise on accents: [2, 110, 52]."""
    return (drive * BROW_STEP).clip(0, None) @ coefficients([{"browInnerUp": 1.0, **both("browOuterUp", 0.6)}])
