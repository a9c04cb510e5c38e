"""Sounds made by formula: music and rumbles, to which the mouth stays still, and bare syllables.

A syllable is one vowel of a simple voice by itself or beside a murmur, a pause or a hiss. No synthesiser
says such, and a mouth should move for them all the same.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..authoring.visemes import CLASSES, CLOSED, SILENCE
from .phones import LABEL_RATE

Floats = NDArray[np.floating[Any]]

SAMPLE_RATE = 16000
FORMANTS_HZ = {"aa": (750, 1200, 2500), "eh": (560, 1800, 2550), "iy": (300, 2300, 3000), "ao": (500, 850, 2450),
               "uw": (320, 800, 2300)}  # fmt: skip


def vowel(seconds: float, formants: tuple[float, ...], f0: Floats) -> Floats:
    """Harmonics of a voice whose pitch goes from f0[0] to f0[1] Hz; without formants a plain 1 / k series."""
    time = np.arange(round(seconds * SAMPLE_RATE)) / SAMPLE_RATE
    pitch = np.linspace(f0[0], f0[1], len(time))
    phase = 2 * np.pi * np.cumsum(pitch) / SAMPLE_RATE
    total = np.zeros_like(time)
    for k in range(1, int(min(40, 5000 / f0.max())) + 1):
        f = k * pitch
        gain = np.ones_like(time)
        for centre in formants:
            gain /= np.hypot(1 - (f / centre) ** 2, 80 * f / centre**2)
        total += gain * np.cos(k * phase + k * k * bool(formants)) / k
    return total / (np.abs(total).max() + 1e-9)


def _envelope(count: int, random: np.random.Generator) -> Floats:
    if random.random() < 0.4:
        return np.sin(np.pi * (np.arange(count) + 0.5) / count)
    edge = max(1, round(min(0.4 * count, np.exp(random.uniform(np.log(0.1), np.log(40))) / 1000 * SAMPLE_RATE)))
    ramp = (np.arange(count) + 0.5) / edge
    return np.clip(np.minimum(ramp, ramp[::-1]), 0, 1)


def syllables(random: np.random.Generator) -> tuple[Floats, NDArray[np.int8]]:
    """About 12 s -> samples [n], classes in steps of 10 ms."""
    step = SAMPLE_RATE // LABEL_RATE
    pieces: list[Floats] = []
    said: list[int] = []

    def add(samples: Floats, kind: int) -> None:
        count = max(1, round(len(samples) / step))
        pieces.append(np.resize(samples, count * step) if len(samples) else np.zeros(step))
        said.extend([kind] * count)

    def speak(kind: str) -> None:
        seconds = random.uniform(0.08, 0.5) if random.random() < 0.85 else random.uniform(0.5, 2.5)
        glide = random.uniform(-0.12, 0.12, 2) * (random.random() < 0.7)
        f0 = np.exp(random.uniform(np.log(80), np.log(280))) * np.exp(glide)
        size = np.exp(random.uniform(-0.12, 0.12))
        plain = kind == "aa" and random.random() < 0.35
        formants = () if plain else tuple(f * size * np.exp(random.normal(0, 0.04)) for f in FORMANTS_HZ[kind])
        sound = vowel(round(seconds * LABEL_RATE) / LABEL_RATE, formants, f0)
        add(sound * _envelope(len(sound), random) * random.uniform(0.1, 0.5), CLASSES.index(kind))

    while len(said) < 12 * LABEL_RATE:
        add(np.zeros(round(np.exp(random.uniform(np.log(0.15), np.log(6))) * SAMPLE_RATE)), SILENCE)
        speak(random.choice(list(FORMANTS_HZ)))
        for _ in range(random.integers(0, 4)):
            between = random.random()
            count = round(random.uniform(0.05, 0.13) * LABEL_RATE) * step
            time = np.arange(count) / SAMPLE_RATE
            if between < 0.35:
                pitch = 2 * np.pi * random.uniform(90, 220) * time
                add(random.uniform(0.02, 0.1) * (np.cos(pitch) + 0.5 * np.cos(2 * pitch)), CLOSED)
            elif between < 0.55:
                add(np.zeros(count), CLOSED)
            elif between < 0.75:
                count = round(random.uniform(0.08, 0.3) * LABEL_RATE) * step
                hiss = np.diff(random.standard_normal(count + 2), 2) * random.uniform(0.01, 0.06)
                add(hiss, CLASSES.index("s z sh"))
            speak(random.choice(list(FORMANTS_HZ)))
    return np.concatenate(pieces), np.array(said, np.int8)


def music(random: np.random.Generator) -> Floats:
    """About 12 s of chords, a tune, drums, or of several of them: [n]."""
    total = np.zeros(12 * SAMPLE_RATE)
    beat = random.uniform(0.25, 0.7)
    root = random.uniform(110, 330)
    scale = root * 2.0 ** (np.array([0, 2, 4, 5, 7, 9, 11, 12, 14, 16, 19, 24]) / 12)
    parts = random.random(3) < (0.8, 0.6, 0.5)
    parts[0] |= not parts.any()
    overtones = random.uniform(0.5, 3.0)

    def note(start: float, seconds: float, f0: float, level: float, hold: float) -> None:
        begin = round(start * SAMPLE_RATE)
        time = np.arange(min(round(seconds * SAMPLE_RATE), len(total) - begin)) / SAMPLE_RATE
        if len(time) == 0:
            return
        sound = sum(np.sin(2 * np.pi * k * f0 * time + k) / k**overtones for k in range(1, int(min(12, 7000 / f0)) + 1))
        total[begin : begin + len(time)] += level * sound * np.minimum(time / 0.008, 1) * np.exp(-time / hold)

    times = np.arange(0, 12, beat)
    hold = random.uniform(0.15, 3.0)
    for i, start in enumerate(times):
        if parts[0] and i % 4 == 0:
            for f0 in random.choice(scale[:8], random.integers(2, 5), replace=False):
                note(start, 4 * beat, f0, 0.3, 2 * hold)
        if parts[1] and random.random() < 0.8:
            note(start, beat * random.uniform(0.6, 1.2), 2 * random.choice(scale), 0.4, hold)
        if parts[2]:
            begin, count = round(start * SAMPLE_RATE), round(random.uniform(0.03, 0.2) * SAMPLE_RATE)
            noise = random.standard_normal(count) * np.exp(-5 * np.arange(count) / count) * random.uniform(0.1, 0.6)
            noise = noise if i % 2 else np.convolve(noise, np.ones(40) / 12, "same")
            total[begin : begin + count] += noise[: len(total) - begin]
    return 0.5 * total / (np.abs(total).max() + 1e-9)


def rumble(random: np.random.Generator) -> Floats:
    """12 s of wind, engines or a crowd far away: noise of a colour that swells and ebbs, and knocks: [n]."""
    count = 12 * SAMPLE_RATE
    frequency = np.fft.rfftfreq(count, 1 / SAMPLE_RATE)
    colour = ((frequency + 30) / 1000) ** -random.uniform(0.3, 2.0) * (frequency > random.uniform(10, 80))
    if random.random() < 0.5:
        centre = np.exp(random.uniform(np.log(80), np.log(3000)))
        colour /= np.hypot(1, (frequency - centre) / (centre * random.uniform(0.1, 1.5)))
    total = np.fft.irfft(np.fft.rfft(random.standard_normal(count)) * colour, count)
    points = np.arange(0, 12.5, random.uniform(0.1, 1.5))
    swell = np.interp(np.arange(count) / SAMPLE_RATE, points, random.uniform(-12, 0, len(points)))
    total *= 10 ** (swell * random.uniform(0, 2) / 20)
    total /= np.abs(total).max() + 1e-9
    for start in random.uniform(0, 11.5, random.poisson(3)):
        begin, length = round(start * SAMPLE_RATE), round(random.uniform(0.02, 0.3) * SAMPLE_RATE)
        knock = random.standard_normal(length) * np.exp(-6 * np.arange(length) / length)
        total[begin : begin + length] += knock * random.uniform(0.1, 0.5)
    return 0.5 * total / (np.abs(total).max() + 1e-9)


def interrupted(samples: Floats, random: np.random.Generator, shortest: float) -> Floats:
    """The same, or, mostly, broken off and begun again: what stops before a window ends is no speech either.

    shortest: seconds. A single note is a vowel for all that anybody could hear.
    """
    if random.random() < 0.3:
        return samples
    gain = np.zeros(len(samples))
    at = 0 if random.random() < 0.6 else round(random.uniform(0.2, 4) * SAMPLE_RATE)
    while at < len(samples):
        length = round(np.exp(random.uniform(np.log(shortest), np.log(9))) * SAMPLE_RATE)
        fade = min(round(np.exp(random.uniform(np.log(0.002), np.log(0.8))) * SAMPLE_RATE), length // 2)
        piece = np.ones(length)
        piece[length - fade :] = np.linspace(1, 0, fade)
        begin = min(round(random.uniform(0.001, 0.1) * SAMPLE_RATE), length // 2)
        piece[:begin] = np.linspace(0, 1, begin)
        gain[at : at + length] = piece[: len(samples) - at]
        at += length + round(random.uniform(0.3, 5) * SAMPLE_RATE)
    return samples * gain
