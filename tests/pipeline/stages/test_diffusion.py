"""The sampler against closed forms; the golden vectors are in packs/test_published.py."""

from __future__ import annotations

import numpy as np
import pytest

from pipeline.stages.diffusion import Schedule, guided, sample


def cosine_schedule(steps: int) -> Schedule:
    t = np.arange(steps + 1) / steps
    bar = np.cos((t + 0.008) / 1.008 * np.pi / 2) ** 2
    alpha = np.concatenate([[1.0], 1 - np.clip(1 - bar[1:] / bar[:-1], 1e-4, 0.999)])
    return Schedule(alpha.astype(np.float32), np.cumprod(alpha).astype(np.float32))


def test_a_constant_prediction_is_reached_exactly() -> None:
    schedule = cosine_schedule(50)
    random = np.random.default_rng(0)
    target = random.standard_normal((7, 3)).astype(np.float32)
    noises = random.standard_normal((49, 7, 3)).astype(np.float32)
    out = sample(lambda x, t: target, noises[0], noises, schedule)
    np.testing.assert_allclose(out, target, atol=1e-6)


def test_steps_run_down_and_the_last_adds_no_noise() -> None:
    schedule = cosine_schedule(10)
    steps: list[int] = []
    used: list[int] = []

    def noises():  # type: ignore[no-untyped-def]
        for i in range(100):
            used.append(i)
            yield np.ones(1, np.float32)

    def denoise(x: np.ndarray, t: int) -> np.ndarray:
        steps.append(t)
        return x

    sample(denoise, np.ones(1, np.float32), noises(), schedule)
    assert steps == list(range(10, 0, -1))
    assert len(used) == 9


def test_the_exact_posterior_mean_of_a_gaussian_gives_its_spread() -> None:
    """With x0 ~ N(3, 0.5^2) the posterior mean is linear, and the samples must have that mean and spread."""
    schedule = cosine_schedule(50)
    random = np.random.default_rng(1)
    mean, variance = np.float32(3), np.float32(0.25)

    def denoise(x: np.ndarray, t: int) -> np.ndarray:
        bar = schedule.alpha_bar[t]
        return mean + np.sqrt(bar) * variance / (bar * variance + 1 - bar) * (x - np.sqrt(bar) * mean)

    noises = (random.standard_normal(20000).astype(np.float32) for _ in range(49))
    out = sample(denoise, random.standard_normal(20000).astype(np.float32), noises, schedule)
    assert out.mean() == pytest.approx(3, abs=0.02)
    assert out.std() == pytest.approx(0.5, rel=0.1)


def test_guidance_goes_from_unconditional_through_conditional_and_beyond() -> None:
    without, given = np.float32([1, 2]), np.float32([2, 0])
    np.testing.assert_array_equal(guided(without, given, 0), without)
    np.testing.assert_array_equal(guided(without, given, 1), given)
    np.testing.assert_array_equal(guided(without, given, 2), np.float32([3, -2]))
