"""The speech models of the embedded pack: the encoder (this file), the denoiser and their tables.

The encoder hears a window of 4 s and says eight things of each of its 100 frames (features.py). It is
hand-built: a short-time spectrum, energies of seven bands, and thresholds found by comparing the bands
with the phones of synthetic voices (espeak-ng, flite). Frame j describes the sound of [j, j + 1) / 25 s.
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np

from .denoiser import build_denoiser, rest_conditioning
from .features import FEATURES
from .schedule import cosine_schedule
from .writer import Graph, Value

SAMPLES = 64080
"""Samples of a window: 100 frames of 640, and 40 reflected ones on each side."""

WINDOW, HOP, PERIOD = 400, 160, 512
"""Samples of a spectrum's window (25 ms), its step (10 ms), and the period of its lowest bin."""

SLICES = 4
"""Spectra in a frame of the film (40 ms)."""

BINS = PERIOD // 2 + 1

BAND_EDGES_HZ = (100, 300, 550, 1000, 1700, 3000, 4500, 7800)
"""Murmur, low and high first formant, back and front second formant, third formant, hiss."""

PITCH_LAGS = np.arange(40, 200, 2)
"""Lags in samples at which a voice may repeat itself: 80 to 400 Hz."""

LOUD_SLICES, QUIET_SLICES = 12, 40
"""So many of a window's 400 slices tell how loud its loudest, and its quietest, part is."""

DIGITAL_SILENCE_DB = -85.0
"""Slices below it are padding or gated pauses, and tell nothing of the background."""

FLOOR_DB = -48.0
"""Sound below this level (0 = a full-scale sine) is no speech, whatever the rest of the window is."""


def build_speech_graphs(folder: Path) -> None:
    """Write speech_encoder.onnx, denoiser.onnx, conditioning.bin and schedule.bin."""
    speech_encoder().save(folder / "speech_encoder.onnx")
    build_denoiser().save(folder / "denoiser.onnx")
    (folder / "conditioning.bin").write_bytes(rest_conditioning().astype("<f4").tobytes())
    (folder / "schedule.bin").write_bytes(cosine_schedule().astype("<f4").tobytes())


def ramp(value: Value, low: float, high: float) -> Value:
    """0 at `low`, 1 at `high` (which may be the smaller), linear between."""
    return ((value - low) * (1 / (high - low))).clip(0, 1)


def speech_encoder() -> Graph:
    """`audio_padded` [1, 64080] -> `audio_features` [1, 100, 8] (see FEATURES)."""
    g = Graph("speech_encoder")
    audio = g.input("audio_padded", [1, SAMPLES])
    power = _power_spectrum(g, audio)  # [400, 257]
    murmur, low, high, back, middle, third, sibilant = (
        _band_db(g, power, edges) for edges in pairwise(BAND_EDGES_HZ)
    )  # each [400, 1]
    total = _band_db(g, power, (100, 7800))
    reference = _mean_of_extremes(total, LOUD_SLICES, largest=True)
    recorded = g.where(total < DIGITAL_SILENCE_DB, reference, total)
    background = _mean_of_extremes(recorded, QUIET_SLICES, largest=False)
    level = _level(g, total, reference, background)
    voicing = _voicing(g, power)
    level = level * _speechlike(g, level, voicing, reference - background)

    below = g.maximum(murmur, low)
    opening = ramp(high - below, -25, -9)
    opening = opening * ramp(high - g.maximum(back, middle), 24, 12)  # in a back "oo" it is the second formant
    tilt = middle - back
    front = ramp(tilt, 5, 17)
    dull = ramp(tilt, 7, -7)
    rounding = dull * g.maximum(1 - opening, ramp(low - high, -1, 8))
    hiss = ramp(g.maximum(third, sibilant) - g.maximum(below, high), -3, 9)
    breath = (1 - voicing) * (1 - hiss)
    closure = _closure(g, power, level, reference - total) * (1 - hiss)

    frame = {
        "level": _frame_mean(level),
        "voicing": _frame_mean(voicing, level),
        "open": _frame_mean(opening, level),
        "front": _frame_mean(front, level),
        "round": _frame_mean(rounding, level),
        "hiss": _frame_mean(hiss * level),
        "breath": _frame_mean(breath * level),
        "closure": (_frame_mean(closure) + _slices(closure).max(1, keep=True)) * 0.5,
    }
    features = g.concat([frame[name] for name in FEATURES], axis=1)
    g.output("audio_features", features.unsqueeze(0), [1, 100, len(FEATURES)])
    return g


def _power_spectrum(g: Graph, audio: Value) -> Value:
    """[1, 64080] samples -> [400, 257] power in slices of 10 ms; a full-scale sine sums to about 1.

    The kernels are looked up in one period of a cosine, so that the file holds 512 numbers and not
    the whole table, and no machine's own sine enters it.
    """
    cosine = np.round(np.cos(np.arange(PERIOD) * (2 * np.pi / PERIOD)), 6)
    hann = np.round(0.5 - 0.5 * np.cos(np.arange(WINDOW) * (2 * np.pi / WINDOW)), 6)
    bins = g.constant(np.arange(BINS)[:, None])
    times = g.constant(np.arange(WINDOW)[None])
    phase = bins * times
    period = np.array(PERIOD, np.int64)
    wave = g.constant(cosine)
    kernels = [
        wave._op("Gather", g.op("Mod", phase + np.array(shift, np.int64), period)) * hann
        for shift in (0, 3 * PERIOD // 4)  # cosine; cos(x - 90 degrees) = sine
    ]
    weight = g.concat(kernels, axis=0).unsqueeze(1)  # [514, 1, 400]
    reach = (WINDOW - HOP) // 2 - (SAMPLES - SLICES * 100 * HOP) // 2
    edges = np.array([0, 0, reach, 0, 0, reach], np.int64)
    padded = g.op("Pad", audio.unsqueeze(1), edges, mode="reflect")
    waves = g.op("Conv", padded, weight, strides=[HOP])[0] * (4 / WINDOW)  # [514, 400]
    squares = waves * waves
    return (squares[:BINS] + squares[BINS:]).transpose(1, 0) * (1 / 1.5)  # 1.5: a Hann window's noise bandwidth


def _band_db(g: Graph, power: Value, edges_hz: tuple[int, int]) -> Value:
    """[400, 1] decibels of the energy between two frequencies; 0 = a full-scale sine, -90 at least."""
    low, high = (-(-edge * PERIOD // 16000) for edge in edges_hz)
    return (power[:, low:high].sum(1, keep=True) + 1e-9).log() * 4.342945


def _mean_of_extremes(value: Value, count: int, largest: bool) -> Value:
    """Mean of the `count` largest or smallest of [400, 1] -> [1, 1]."""
    picked, _ = value.graph.ops("TopK", value, np.array([count], np.int64), count=2, axis=0, largest=int(largest))
    return picked.mean(0, keep=True)


def _level(g: Graph, total: Value, reference: Value, background: Value) -> Value:
    """Loudness between the background (or 32 dB below the loudest slices, whichever is more) and those."""
    quiet = g.maximum(g.minimum(g.maximum(background + 5, reference - 32), reference - 16), FLOOR_DB)
    return ((total - quiet) / g.maximum(reference - 4 - quiet, 12)).clip(0, 1)


def _speechlike(g: Graph, level: Value, voicing: Value, span_db: Value) -> Value:
    """[1, 1]: 0 for a steady noise. Speech rises and falls within a window, or is a vowel held out."""
    voiced = (voicing * level).sum(0, keep=True) / (level.sum(0, keep=True) + 1e-3)
    return g.maximum(ramp(span_db, 7, 14), ramp(voiced, 0.6, 0.95))


def _voicing(g: Graph, power: Value) -> Value:
    """Highest normalised autocorrelation at a pitch's lag, from the spectrum of 90 to 2000 Hz."""
    first, stop = (edge * PERIOD // 16000 + 1 for edge in (90, 2000))
    bins = np.arange(first, stop)
    hann = 0.5 - 0.5 * np.cos(np.arange(WINDOW) * (2 * np.pi / WINDOW))
    overlap = np.array([np.sum(hann[lag:] * hann[: WINDOW - lag]) for lag in PITCH_LAGS]) / np.sum(hann * hann)
    waves = np.cos(2 * np.pi * (np.outer(bins, PITCH_LAGS) % PERIOD) / PERIOD)
    table = np.round(waves / overlap**0.7, 4).astype(np.float16)  # in full it would favour long lags of noise
    low = power[:, first:stop]
    repeats = (low @ g.constant(table).cast()).max(1, keep=True)
    return ramp(repeats / (low.sum(1, keep=True) + 1e-9), 0.38, 0.65)


def _closure(g: Graph, power: Value, level: Value, softer: Value) -> Value:
    """How far the bands that an open mouth lets out (550 to 4500 Hz) have dropped, half of the drop
    of the whole (`softer`) added, while there is speech within 150 ms."""
    mouth = _band_db(g, power, (550, 4500))
    drop = _mean_of_extremes(mouth, LOUD_SLICES, largest=True) - mouth
    near = g.op("MaxPool", level.transpose(1, 0).unsqueeze(0), kernel_shape=[31], pads=[15, 15])
    return ramp(drop + 0.5 * softer, 23, 31) * ramp(near[0].transpose(1, 0), 0.3, 0.6)


def _slices(value: Value) -> Value:
    """[400, 1] -> [100, 4]."""
    return value.reshape(100, SLICES)


def _frame_mean(value: Value, weight: Value | None = None) -> Value:
    """[400, 1] -> [100, 1], the mean of each frame's slices, weighted where a weight is given."""
    if weight is None:
        return _slices(value).mean(1, keep=True)
    weight = weight + 1e-3
    return _frame_mean(value * weight) / _frame_mean(weight)
