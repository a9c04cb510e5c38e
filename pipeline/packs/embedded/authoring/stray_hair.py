"""Hair that stands off the head, beyond what the segmenter takes for the person: fine detail about it.

Lengths are pixels of 512 unless they are said to be of HALF.
"""

from __future__ import annotations

import numpy as np

from .anatomy import CHIN
from .background_fill import FINE, HALF, enlarged_to, mean, spread
from .sampling import highest, pool
from .writer import Graph, Value

REACH = 14
"""Pixels of HALF from the person within which hair is looked for."""

FINE_RADIUS = 2
"""Detail is what differs from the mean of a square of so many pixels about each pixel."""

BESIDE = 12
"""Cells of 4 pixels from a place within which the background's own detail is looked at: if that has as much, it is no
hair."""

BUSIER = (1.5, 4.0)
"""Times the background's most detail from which a place has more, by and by."""

UNLIKE = (2.0, 6.0)
"""Squared distances from the colour behind, in the background's most detail, from which hair is seen, by and by."""

NO_DETAIL = 1e-4
"""Added to the background's detail: sum over the channels of squares, 0..1."""

STEPS, STRIDE = 8, 2
"""Hair hangs together with the head: by so many steps of so many pixels of HALF."""

BELOW_CHIN = 48
"""Pixels below the chin over which hair is no longer looked for: there is clothing."""


def stray_hair(g: Graph, image: Value, person: Value, about: Value, hidden: Value, points: Value) -> Value:
    """[1, 1, 512, 512] 1 where hair stands off the person.

    `person`, `about` [1, 1, HALF, HALF]: 1 where the person is, and REACH around. `hidden` [1, 1, 512, 512]: what is
    not taken for background anyway.
    """
    shown = 1 - about
    fine = image - mean(image, FINE_RADIUS)
    energy = mean(pool((fine * fine).sum(1, keep=True), 2), 1)
    most = highest(pool(energy * shown, 2), 2 * BESIDE + 1)
    most = enlarged_to(most, 1, HALF) + NO_DETAIL
    low, high = BUSIER
    busy = g.smoothstep((energy / most - low) / (high - low)) * about
    behind = spread(g, image, 3, g.maximum(hidden, enlarged_to(highest(busy, 3), 1)), FINE)
    away = image - behind
    away = mean(pool((away * away).sum(1, keep=True), 2), 1)
    low, high = UNLIKE
    hair = g.smoothstep((away / most - low) / (high - low)) * about
    rows = np.arange(HALF, dtype=np.float32)[:, None] * 2 + 0.5
    hair = hair * g.smoothstep((points[CHIN, 1] + BELOW_CHIN - g.constant(rows)) / BELOW_CHIN)
    joined, passable = person, highest(hair, 3)
    for _ in range(STEPS):
        joined = g.maximum(person, highest(joined, 2 * STRIDE + 1) * passable)
    return enlarged_to(hair * highest(joined, 3), 1)
