"""The files that are no networks: conditioning, noise schedule, and the template of the motion."""

from __future__ import annotations

import json

import numpy as np

from ...graphs.standins.transformer import PREVIOUS, STEPS

AUDIO, MOTION, EXPRESSION = 256, 73, 63
# Of the published cosine schedule (JoyVASA's).
OFFSET, LEAST_BETA, GREATEST_BETA = 0.008, 1e-4, 0.999

INDENT = 19
"""Of the template, which makes it as long as the published one."""

STD = 0.01
"""Of expression offsets, in keypoint units: lips move by about 0.03."""


def conditioning(seed: int) -> bytes:
    """Start features, start motion and null features, little-endian float32."""
    random = np.random.Generator(np.random.PCG64([seed, 1]))
    start = random.normal(0, 0.3, (PREVIOUS * AUDIO,)), np.zeros(PREVIOUS * MOTION), random.normal(0, 0.3, AUDIO)
    return np.concatenate(start).astype("<f4").tobytes()


def schedule() -> bytes:
    """[51, 2] alpha and alpha_bar of a cosine schedule of 50 steps; row 0 is step 0."""
    time = np.arange(STEPS + 1) / STEPS
    level = np.cos((time + OFFSET) / (1 + OFFSET) * np.pi / 2) ** 2
    beta = np.clip(1 - level[1:] / level[:-1], LEAST_BETA, GREATEST_BETA)
    alpha = np.concatenate([[1.0], 1 - beta])
    return np.column_stack([alpha, np.cumprod(alpha)]).astype("<f4").tobytes()


def template(seed: int) -> bytes:
    """Means, deviations and ranges of the motion vector, JSON written as long as the published one."""
    random = np.random.Generator(np.random.PCG64([seed, 2]))
    # One deviation a keypoint axis; the head stays within a few degrees.
    lists: dict[str, list[float] | float] = {
        "mean_exp": random.normal(0, 0.002, EXPRESSION).tolist(),
        "std_exp": (STD * random.uniform(0.5, 1.5, EXPRESSION)).tolist(),
        "min_scale": [1.25],
        "max_scale": [1.27],
        "min_t": [-0.01] * 3,
        "max_t": [0.01] * 3,
    }
    for angle in ("pitch", "yaw", "roll"):
        lists |= {f"min_{angle}": [-2.0], f"max_{angle}": [2.0]}
    return json.dumps(lists, indent=INDENT).encode()
