"""The log-mel front end of the speech encoder: constants, and its filters."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

SAMPLE_RATE = 16000
SAMPLES = 64080
"""Samples of a window: 100 frames of 640, and 40 reflected ones on each side."""

WINDOW, HOP, PERIOD = 400, 160, 512
"""Samples of a spectrum's window (25 ms), its step (10 ms), and the period of its lowest bin."""

SLICES = 4
"""Spectra in a frame of the film (40 ms)."""

BINS = PERIOD // 2 + 1
BANDS = 80
EDGES_HZ = (50, 7800)

LOUD_SLICES = 40
"""Mean power of so many loudest slices of a window's 400 is its reference."""

FLOOR, LEAST = 1e-7, 1e-10
"""Power added to every band: this part of the reference, and this of a full-scale sine."""

SPAN = 5.0
"""A band's mean is taken over the louder half of the slices, and no slice more than so many nepers of power
below the loudest."""

RANGE = (-8.0, 5.0)
"""Nepers of power about that mean that the network sees."""


def mel_filters() -> npt.NDArray[np.float32]:
    """[80, 257] triangles, evenly spaced in mel = 1127 ln(1 + f / 700); rounded, so that they are the same
    on every machine. The lowest are narrower than a bin and take the nearest."""
    low, high = (1127 * np.log(1 + edge / 700) for edge in EDGES_HZ)
    edges = 700 * (np.exp(np.linspace(low, high, BANDS + 2) / 1127) - 1)
    bins = np.arange(BINS) * (SAMPLE_RATE / PERIOD)
    left, centre, right = edges[:-2, None], edges[1:-1, None], edges[2:, None]
    filters = np.clip(np.minimum((bins - left) / (centre - left), (right - bins) / (right - centre)), 0, None)
    narrow = filters.sum(1) < 0.5
    filters[narrow, np.round(edges[1:-1] * PERIOD / SAMPLE_RATE).astype(int)[narrow]] += 0.5
    return np.round(filters, 4).astype(np.float32)
