"""The diffusion sampler: from noise to a clean sequence in a fixed number of steps.

DDPM ancestral sampling (Ho et al. 2020, eq. 6 and 7) with a network that predicts the clean
sequence x0. Nothing here knows what the sequence means.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from ..values import F32


@dataclass(frozen=True)
class Schedule:
    """Noise schedule of `steps` steps; row t belongs to step t, row 0 is the clean end.

    `alpha`: [steps + 1] float32, 1 - beta of a step; `alpha_bar`: [steps + 1], their running product.
    """

    alpha: F32
    alpha_bar: F32

    @property
    def steps(self) -> int:
        return len(self.alpha) - 1


def guided(unconditional: F32, conditional: F32, scale: float) -> F32:
    """Classifier-free guidance: 0 ignores the condition, 1 follows it, above 1 exaggerates it."""
    return unconditional + np.float32(scale) * (conditional - unconditional)


def sample(denoise: Callable[[F32, int], F32], start: F32, noises: Iterable[F32], schedule: Schedule) -> F32:
    """Draw one clean sequence.

    Args:
        denoise: (x_t, t) -> x0, the clean sequence as the network sees it from step t; shapes of `start`.
        start: x_T, standard normal noise.
        noises: standard normal noise of the same shape for steps T, T-1, ..., 2 (step 1 adds none).
        schedule: the noise schedule that the network was made for.

    Returns:
        x_0, float32, of the shape of `start`.
    """
    alpha, bar = schedule.alpha, schedule.alpha_bar
    one = np.float32(1)
    noise = iter(noises)
    x = start
    for t in range(schedule.steps, 0, -1):
        left = one - bar[t]  # variance of the noise in x_t
        keep = (one - bar[t - 1]) * np.sqrt(alpha[t]) / left
        pull = (one - alpha[t]) * np.sqrt(bar[t - 1]) / left
        x = keep * x + pull * denoise(x, t)
        if t > 1:
            sigma = np.sqrt((one - bar[t - 1]) / left * (one - alpha[t]))
            x = x + sigma * next(noise)
    return x.astype(np.float32, copy=False)
