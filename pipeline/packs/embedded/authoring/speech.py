"""The speech encoder of the embedded pack: what is said in each frame of a window of 4 s.

The log-mel front end is part of the graph; the network behind it is trained (training/). Frame j describes the
sound of [j, j + 1) / 25 s. architecture.py says what stands in the features' columns.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from .architecture import AUDIO_SIZE, ENCODER
from .convolutions import residual_blocks, silu
from .denoiser import build_denoiser, rest_conditioning
from .mel import (
    BINS,
    FLOOR,
    HOP,
    LEAST,
    LOUD_SLICES,
    PERIOD,
    RANGE,
    SAMPLES,
    SLICES,
    SPAN,
    WINDOW,
    mel_filters,
)
from .schedule import cosine_schedule
from .steadiness import speechlike
from .visemes import CLASSES, SILENCE
from .weights import Weights
from .writer import Graph, Value

FRAMES = 100


def build_speech_graphs(folder: Path) -> None:
    """Write speech_encoder.onnx, denoiser.onnx, conditioning.bin and schedule.bin."""
    speech_encoder().save(folder / "speech_encoder.onnx")
    build_denoiser().save(folder / "denoiser.onnx")
    (folder / "conditioning.bin").write_bytes(rest_conditioning().astype("<f4").tobytes())
    (folder / "schedule.bin").write_bytes(cosine_schedule().astype("<f4").tobytes())


def speech_encoder() -> Graph:
    """`audio_padded` [1, 64080] -> `audio_features` [1, 100, A]."""
    g = Graph("speech_encoder")
    power = _power_spectrum(g, g.input("audio_padded", [1, SAMPLES]))
    mel = _normalised(g, power)
    weights = Weights(g, "encoder")
    x = silu(weights.conv(mel, "first"))
    x = silu(weights.conv(x, "second", stride=2, groups=ENCODER.groups))
    x = residual_blocks(x, weights, ENCODER)
    speech = speechlike(g, power)
    silent = np.eye(len(CLASSES), 1, -SILENCE, dtype=np.float32)[None]
    shares = weights.conv(x, "classes").op("Softmax", axis=1) * speech + silent * (1 - speech)
    others = weights.conv(x, "others", stride=2, pad=False)
    heard = np.ones((1, 1, FRAMES), np.float32)
    features = g.concat(
        [shares[:, :, 0::2], shares[:, :, 1::2], others[:, 0:1].op("Sigmoid") * speech, others[:, 1:2].op("Tanh"),
         g.constant(heard), others[:, 2:].op("Tanh") * speech],
        axis=1,
    )  # fmt: skip
    g.output("audio_features", features.transpose(0, 2, 1), [1, FRAMES, AUDIO_SIZE])
    return g


def _power_spectrum(g: Graph, audio: Value) -> Value:
    """[1, 64080] samples -> [1, 257, 400] power in slices of 10 ms; a full-scale sine sums to about 1.

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
        wave.op("Gather", g.op("Mod", phase + np.array(shift, np.int64), period)) * hann
        for shift in (0, 3 * PERIOD // 4)  # cosine; cos(x - 90 degrees) = sine
    ]
    weight = g.concat(kernels, axis=0).unsqueeze(1)  # [514, 1, 400]
    reach = (WINDOW - HOP) // 2 - (SAMPLES - SLICES * FRAMES * HOP) // 2
    edges = np.array([0, 0, reach, 0, 0, reach], np.int64)
    padded = g.op("Pad", audio.unsqueeze(1), edges, mode="reflect")
    waves = g.op("Conv", padded, weight, strides=[HOP]) * (4 / WINDOW)  # [1, 514, 400]
    squares = waves * waves
    return (squares[:, :BINS] + squares[:, BINS:]) * (1 / 1.5)  # 1.5: a Hann window's noise bandwidth


def _normalised(g: Graph, power: Value) -> Value:
    """[1, 257, 400] -> [1, 80, 400]: log-mel energies less each band's mean over the louder slices."""
    loudest, _ = _largest(power.sum(1), LOUD_SLICES)
    floor = loudest.mean(1).reshape(1, 1, 1) * FLOOR + LEAST
    mel = (g.constant(mel_filters()) @ power + floor).log()
    level = mel.mean(1)
    _, middle = _largest(level, SLICES * FRAMES // 2)
    bound = g.maximum(middle, level.max(1, keep=True) - SPAN)
    loud = (1 - (level < bound).cast()).unsqueeze(1)
    mean = (mel * loud).sum(2, keep=True) / loud.sum(2, keep=True)
    return (mel - mean).clip(*RANGE) * (1 / 3)


def _largest(value: Value, count: int) -> tuple[Value, Value]:
    """The `count` largest of [1, n]: [1, count], and the smallest of them [1, 1]."""
    picked, _ = value.graph.ops("TopK", value, np.array([count], np.int64), count=2, axis=1)
    return picked, picked.min(1, keep=True)
