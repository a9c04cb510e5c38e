"""Tells a steady noise from speech: speech rises and falls within a window, or is a vowel held out.

The network hears noise that runs through a window as what it is; noise that ends in the silence with which a last
window is filled up would seem to speak.
"""

from __future__ import annotations

import numpy as np

from .mel import PERIOD, SAMPLE_RATE, WINDOW
from .writer import Graph, Value

BAND_HZ = (100, 7800)
PITCH_LAGS = np.arange(40, 200, 2)
"""Lags in samples at which a voice may repeat itself: 80 to 400 Hz."""

LOUD_SLICES, QUIET_SLICES = 12, 40
"""So many of a window's 400 slices tell how loud its loudest, and its quietest, part is."""

DIGITAL_SILENCE_DB = -85.0
"""Slices below it are padding or gated pauses, and tell nothing of the background."""

SPAN_DB = (4.0, 7.0)
VOICED = (0.6, 0.95)
"""Ranges over which a window passes for speech: by its rise and fall, by how much of its loud part has a pitch."""


def speechlike(g: Graph, power: Value) -> Value:
    """[1, 257, 400] power in slices of 10 ms -> [1, 1, 1]: 0 for a steady noise, 1 for what may be speech."""
    low, high = (-(-edge * PERIOD // SAMPLE_RATE) for edge in BAND_HZ)
    total = (power[:, low:high].sum(1) + 1e-9).log() * 4.342945  # [1, 400] decibels, 0 = a full-scale sine
    loudest = _mean_of_extremes(total, LOUD_SLICES, largest=True)
    recorded = g.where(total < DIGITAL_SILENCE_DB, loudest, total)
    span = loudest - _mean_of_extremes(recorded, QUIET_SLICES, largest=False)
    level = _ramp(total - loudest, -15, -4)
    voiced = (_voicing(g, power) * level).sum(1, keep=True) / (level.sum(1, keep=True) + 1e-3)
    return g.maximum(_ramp(span, *SPAN_DB), _ramp(voiced, *VOICED)).reshape(1, 1, 1)


def _ramp(value: Value, low: float, high: float) -> Value:
    """0 at `low`, 1 at `high`, linear between."""
    return ((value - low) * (1 / (high - low))).clip(0, 1)


def _mean_of_extremes(value: Value, count: int, largest: bool) -> Value:
    """Mean of the `count` largest or smallest of [1, n] -> [1, 1]."""
    picked, _ = value.graph.ops("TopK", value, np.array([count], np.int64), count=2, axis=1, largest=int(largest))
    return picked.mean(1, keep=True)


def _voicing(g: Graph, power: Value) -> Value:
    """[1, 400] 0..1: highest normalised autocorrelation at a pitch's lag, from the spectrum of 90 to 2000 Hz."""
    first, stop = (edge * PERIOD // SAMPLE_RATE + 1 for edge in (90, 2000))
    bins = np.arange(first, stop)
    hann = 0.5 - 0.5 * np.cos(np.arange(WINDOW) * (2 * np.pi / WINDOW))
    overlap = np.array([np.sum(hann[lag:] * hann[: WINDOW - lag]) for lag in PITCH_LAGS]) / np.sum(hann * hann)
    waves = np.cos(2 * np.pi * (np.outer(PITCH_LAGS, bins) % PERIOD) / PERIOD)
    # Rounded, and the overlap to a power: in full it would favour long lags of noise.
    table = np.round(waves / overlap[:, None] ** 0.7, 4).astype(np.float16)
    low = power[:, first:stop]
    repeats = (g.constant(table).cast() @ low).max(1)
    return _ramp(repeats / (low.sum(1) + 1e-9), 0.38, 0.65)
