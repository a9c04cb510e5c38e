"""Phone times warped from one reading to another."""

from __future__ import annotations

import numpy as np

from .speech_motion.warping import warped

RATE = 16000
SOUNDS = {0: (), 8: (750, 1200, 2500), 10: (300, 2300, 3000), 12: (320, 800, 2300)}


def spoken(order: list[int], seconds: list[float], pitch: float) -> tuple[np.ndarray, np.ndarray]:
    """Vowels one after another: samples, classes in steps of 10 ms."""
    pieces, labels = [], []
    for kind, length in zip(order, seconds, strict=True):
        time = np.arange(round(length * RATE)) / RATE
        total = np.zeros_like(time)
        for k in range(1, int(5000 / pitch) if SOUNDS[kind] else 0):
            gain = np.prod([1 / np.hypot(1 - (k * pitch / c) ** 2, 80 * k * pitch / c**2) for c in SOUNDS[kind]])
            total += gain * np.cos(2 * np.pi * k * pitch * time + k * k) / k
        pieces.append(total)
        labels.append(np.full(round(length * 100), kind))
    return np.concatenate(pieces), np.concatenate(labels)


def test_times_follow_a_reading_of_another_voice_at_another_pace() -> None:
    random = np.random.default_rng(3)
    order = [0, 8, 10, 12, 8, 12, 10, 8, 10, 0]
    seconds = random.uniform(0.12, 0.3, len(order)).round(2)
    read, told = spoken(order, list(seconds), 110)
    uneven = (seconds * random.uniform(0.8, 1.6, len(order))).round(2)
    heard, true = spoken(order, list(uneven), 150)
    found = warped(told, read, heard)
    assert len(found) == len(true)
    assert (found == true).mean() > 0.9
    assert (warped(told, read, read) == told).mean() > 0.97
