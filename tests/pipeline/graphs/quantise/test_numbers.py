"""Scales, weights and blocks represent numbers as well as their bits allow."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.graphs.quantise.blocks import quantise_blocks
from pipeline.graphs.quantise.calibration import Observed
from pipeline.graphs.quantise.quality import decibel, relative_error, squared_error, ssim
from pipeline.graphs.quantise.ranges import RANGES, scale_of
from pipeline.graphs.quantise.weights import quantise_weight


def normal(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


@settings(derandomize=True, deadline=None, max_examples=50)
@given(st.floats(-100, 100), st.floats(-100, 100))
def test_a_scale_holds_its_range_and_zero(first: float, second: float) -> None:
    low, high = sorted((first, second))
    scale = scale_of(low, high)
    values = np.linspace(min(low, 0), max(high, 0), 97)
    assert np.abs(scale.rounded(values) - values).max() <= float(scale.scale) * 1.01
    assert scale.rounded(np.zeros(1)) == 0


@pytest.mark.parametrize("name", sorted(RANGES))
def test_a_range_is_no_wider_than_what_was_seen(name: str) -> None:
    sample = normal(1 << 14)
    low, high = RANGES[name](Observed(-9.0, 11.0, sample))
    assert -9.0 <= low < sample.mean() < high <= 11.0


def test_the_least_squares_range_is_best_and_lets_outliers_go() -> None:
    sample = normal(1 << 14)
    seen = Observed(-30.0, 40.0, sample)
    errors = {name: squared_error(scale_of(*way(seen)).rounded(sample), sample) for name, way in RANGES.items()}
    assert errors["mse"] < 0.05 * errors["minmax"]
    assert errors["mse"] <= 1.05 * errors["percentile"]


def test_a_range_that_is_used_evenly_is_kept() -> None:
    sample = np.linspace(-1, 3, 1 << 14, dtype=np.float32)
    low, high = RANGES["mse"](Observed(-1.0, 3.0, sample))
    assert (low, high) == pytest.approx((-1, 3), abs=0.1)


@pytest.mark.parametrize("bits", [8, 7, 4])
def test_weights_have_the_bits_and_the_error_of_their_bits(bits: int) -> None:
    weight = normal(6, 20, 3, 3) * np.arange(1, 7, dtype=np.float32).reshape(-1, 1, 1, 1)
    integers, scales = quantise_weight(weight, bits)
    limit = 2 ** (bits - 1) - 1
    assert integers.dtype == np.int8
    assert np.abs(integers.astype(int)).max() <= limit
    error = integers * scales.reshape(-1, 1, 1, 1) - weight
    rows = np.sqrt(np.square(error).reshape(6, -1).mean(1)) / np.abs(weight).reshape(6, -1).max(1)
    assert (rows < 1.05 / limit / np.sqrt(12)).all()  # at worst that of even rounding over the whole range


def test_an_output_without_weights_stays_zero() -> None:
    integers, scales = quantise_weight(np.zeros((2, 4, 1, 1), np.float32), 8)
    assert not integers.any()
    assert np.isfinite(scales).all()
    assert (scales > 0).all()


@pytest.mark.parametrize("bits", [4, 8])
@pytest.mark.parametrize("length", [64, 100, 32])
def test_blocks_hold_a_matrix(bits: int, length: int) -> None:
    weight = normal(length, 7) + 0.5
    blocks = quantise_blocks(weight, bits, 32)
    count = -(-length // 32)
    assert blocks.packed.shape == (7, count, 32 * bits // 8)
    assert blocks.scales.shape == (7 * count,)
    assert blocks.zeros.shape == (7 * -(-count * bits // 8),)
    found = unpacked(blocks.packed, bits) - unpacked(blocks.zeros.reshape(7, -1), bits)[:, :count, None]
    found = (found * blocks.scales.reshape(7, count, 1)).reshape(7, -1)
    assert np.abs(found[:, length:]).max(initial=0) == 0
    span = np.ptp(np.pad(weight, ((0, 1), (0, 0))), axis=0).max()
    assert np.abs(found[:, :length].T - weight).max() <= span / (2**bits - 1) * (1.0 if bits == 8 else 2.5)


def unpacked(packed: np.ndarray, bits: int) -> np.ndarray:
    values = packed.astype(np.int64)
    return values if bits == 8 else np.stack([values & 15, values >> 4], -1).reshape(*packed.shape[:-1], -1)


def test_quality_of_equal_and_of_worse_pictures() -> None:
    image = np.clip(0.5 + 0.2 * normal(1, 3, 32, 32), 0, 1)
    noise = normal(1, 3, 32, 32, seed=1)
    assert squared_error(image, image) == 0
    assert decibel(0) == np.inf
    assert decibel(1e-3) == pytest.approx(30)
    assert ssim(image, image) == pytest.approx(1)
    scores = [ssim(image + amount * noise, image) for amount in (0.01, 0.1, 0.5)]
    assert scores == sorted(scores, reverse=True)
    assert scores[0] > 0.99
    assert scores[-1] < 0.4


def test_a_motion_error_is_in_deviations_of_each_column() -> None:
    motion = normal(50, 3) * np.float32([1, 100, 0.01])
    found = motion + 0.1 * motion.std(axis=0)
    assert relative_error(found, motion) == pytest.approx(0.1, rel=1e-4)
    still = np.concatenate([motion, np.ones((50, 1), np.float32)], axis=1)
    assert 0 < relative_error(still + np.float32(1), still) < np.inf
