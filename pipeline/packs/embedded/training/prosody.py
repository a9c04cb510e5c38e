"""Loudness and pitch of clean speech: what brows and head follow."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

SAMPLE_RATE, HOP, WINDOW = 16000, 160, 512
LOWEST_HZ, HIGHEST_HZ = 60, 420
VOICED = 0.5
"""Normalised autocorrelation above which a slice has a pitch."""

PITCH_RANGE = 9.0
"""Semitones above or below the take's median that count as 1 and -1."""


def pitch(samples: NDArray[np.floating[Any]], steps: int) -> NDArray[np.float32]:
    """[n] samples at 16 kHz -> [steps] height of the voice in steps of 10 ms, -1..1, 0 = its median or unvoiced."""
    padded = np.pad(samples.astype(np.float32), (WINDOW // 2, WINDOW + steps * HOP))
    blocks = np.lib.stride_tricks.sliding_window_view(padded, WINDOW)[HOP // 2 :: HOP][:steps]
    spectrum = np.fft.rfft(blocks * np.hanning(WINDOW).astype(np.float32), 2 * WINDOW)
    repeats = np.fft.irfft(np.abs(spectrum) ** 2)[:, : SAMPLE_RATE // LOWEST_HZ]
    fading = np.fft.irfft(np.abs(np.fft.rfft(np.hanning(WINDOW), 2 * WINDOW)) ** 2)[: repeats.shape[1]]
    loud = repeats[:, 0] > 1e-3 * repeats[:, 0].max(initial=1e-9)
    first = SAMPLE_RATE // HIGHEST_HZ
    likeness = (repeats / (fading + 1e-9))[:, first:] / (repeats[:, :1] / fading[0] + 1e-9)
    lag = likeness.argmax(1)
    voiced = loud & (likeness[np.arange(len(lag)), lag] > VOICED)
    if not voiced.any():
        return np.zeros(steps, np.float32)
    semitones = 12 * np.log2(SAMPLE_RATE / (lag + first))
    height = (semitones - np.median(semitones[voiced])) / PITCH_RANGE
    height[np.abs(height) > 1.2] = 0  # an octave off
    return np.where(voiced, np.clip(height, -1, 1), 0).astype(np.float32)
