"""Times of phones in a recording, warped from a synthesiser that reads the same words.

Dynamic time warping of mel cepstra, each set freed of its mean and deviation. Good to a few hundredths of a second,
and independent of the model that is measured.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipeline.packs.embedded.authoring.mel import BINS, HOP, PERIOD, WINDOW, mel_filters
from pipeline.packs.embedded.authoring.visemes import SILENCE

Floats = NDArray[np.floating[Any]]

CEPSTRA = 14
QUIET_DB = 35.0
"""A slice so far below the loudest is silence before the first and after the last word."""

STEPS = ((1, 1, 0.0), (1, 2, 0.3), (2, 1, 0.3))
"""Slices that both go on by, and the price: either is at most twice as fast as the other."""


def warped(labels: NDArray[np.integer[Any]], read: Floats, heard: Floats) -> NDArray[np.int8]:
    """Classes in steps of 10 ms of what was `read`, and both sounds at 16 kHz -> classes of what was `heard`."""
    told, (begin_read, end_read) = _features(read)
    found, (begin, end) = _features(heard)
    # Of the same length first: only what is uneven is left to the warping.
    even = np.linspace(begin_read, end_read - 1, end - begin).round().astype(int)
    path = even[_path(told[even], found[begin:end])]
    result = np.full(len(found), SILENCE, np.int8)
    result[begin:end] = labels[np.minimum(path, len(labels) - 1)]
    return result


def _features(samples: Floats) -> tuple[Floats, tuple[int, int]]:
    """[T, CEPSTRA] in steps of 10 ms, and where speech begins and ends."""
    slices = len(samples) // HOP
    reach = (WINDOW - HOP) // 2
    padded = np.pad(samples.astype(np.float64), (reach, WINDOW))
    windows = np.lib.stride_tricks.sliding_window_view(padded, WINDOW)[::HOP][:slices]
    power = np.abs(np.fft.rfft(windows * np.hanning(WINDOW), PERIOD)[:, :BINS]) ** 2
    loudness = 10 * np.log10(power.sum(1) + 1e-12)
    spoken = np.flatnonzero(loudness > loudness.max() - QUIET_DB)
    begin, end = int(spoken[0]), int(spoken[-1]) + 1
    bands = np.log(power @ mel_filters().T + 1e-7 * power.sum(1).max())
    places = (np.arange(bands.shape[1]) + 0.5) / bands.shape[1]
    cepstra = bands @ np.cos(np.pi * np.outer(places, np.arange(CEPSTRA)))  # DCT-II; its scale is divided out below
    inside = cepstra[begin:end]
    return (cepstra - inside.mean(0)) / (inside.std(0) + 1e-6), (begin, end)


def _path(told: Floats, found: Floats) -> NDArray[np.intp]:
    """[N, d], [N, d] -> [N] for each slice found, which one of those told it is."""
    count = len(found)
    distance = np.sqrt(((found[:, None] - told[None]) ** 2).mean(2))
    total = np.full((count + 2, count + 2), np.inf)  # two rows and columns before the first
    total[1, 1] = 0
    step = np.zeros((count, count), np.int8)
    for i in range(count):
        ways = np.stack([total[i + 2 - di, 2 - dj : count + 2 - dj] + cost for di, dj, cost in STEPS])
        step[i] = ways.argmin(0)
        total[i + 2, 2:] = ways.min(0) + distance[i]
    result = np.zeros(count, np.intp)
    i = j = count - 1
    while i >= 0 and j >= 0:
        di, dj, _ = STEPS[step[i, j]]
        result[max(i - di + 1, 0) : i + 1] = j
        i, j = i - di, j - dj
    return result
