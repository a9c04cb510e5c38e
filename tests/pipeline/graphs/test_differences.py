"""Figures of a difference, on arrays whose figures are known."""

from __future__ import annotations

import math

import numpy as np
import pytest

from pipeline.graphs.comparison import Compared, Comparison, over
from pipeline.graphs.differences import ROUNDING, Error, difference, largest, magnitude_of, span_of


def test_figures() -> None:
    reference = np.zeros((10, 100), np.float32)
    found = (np.arange(1, 1001) / 1000).reshape(10, 100)
    error = difference(found, reference, span=2.0)
    assert (error.max, error.p99, error.p999) == (1.0, 0.99, 0.999)
    assert error.mean == pytest.approx(0.5005)
    assert error.psnr == pytest.approx(10 * math.log10(4 / np.mean(found**2)))


def test_equal_arrays() -> None:
    array = np.array([1.0, np.inf, np.nan], np.float32)
    assert difference(array, array, 1.0) == Error(0, 0, 0, 0, math.inf)
    assert difference(array, array, 1.0).to_json()["psnr"] == "inf"


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_is_infinitely_far(bad: float) -> None:
    error = difference(np.array([bad, 0]), np.zeros(2), 1.0)
    assert (error.max, error.mean, error.psnr) == (math.inf, math.inf, -math.inf)


def test_whole_numbers_and_nothing() -> None:
    assert difference(np.array([3], np.uint8), np.array([5], np.uint8), 1.0).max == 2
    assert difference(np.zeros(0), np.zeros(0), 1.0).max == 0


def test_largest_takes_the_worst_of_each() -> None:
    assert largest([Error(1, 2, 3, 4, 50), Error(4, 3, 2, 1, 60)]) == Error(4, 3, 3, 4, 50)


def test_span_and_magnitude_are_of_finite_numbers() -> None:
    array = np.array([-3, 2, np.nan, np.inf], np.float32)
    assert span_of(array) == 5
    assert magnitude_of(array) == 3
    assert span_of(np.array([np.nan])) == 0
    assert magnitude_of(np.array([-128], np.int8)) == 128


def compared(error: Error, floor: Error, magnitude: float = 1.0) -> Compared:
    return Compared(error, floor, magnitude)


def test_the_ratio_is_the_worse_of_largest_and_mean() -> None:
    floor = Error(1e-5, 1e-6, 0, 0, 0)
    assert compared(Error(2e-5, 1e-6, 9, 9, 0), floor).ratio == pytest.approx(2)
    assert compared(Error(1e-5, 3e-6, 9, 9, 0), floor).ratio == pytest.approx(3)


def test_the_floor_is_one_rounding_at_least() -> None:
    none = Error(0, 0, 0, 0, math.inf)
    assert compared(none, none).ratio == 0
    assert compared(Error(8 * ROUNDING, ROUNDING, 0, 0, 0), none, magnitude=8).ratio == pytest.approx(1)
    assert compared(Error(1e-9, 0, 0, 0, 0), none, magnitude=0).ratio > 1e30


def test_bounds() -> None:
    floor = Error(1e-5, 1e-6, 0, 0, 100)
    found = compared(Error(3e-5, 1e-6, 0, 0, 40.0), floor)
    comparison = Comparison("normal", 0, 1, 2, outputs={"unit": {"y": found}})
    assert comparison.ratio == pytest.approx(3)
    assert over(comparison, 3.01, mean=1e-6, psnr=40) == []
    assert over(comparison) == []
    (line,) = over(comparison, 2)
    assert line == "y (unit inputs) is off by 3.00 times the noise floor, more than 2"
    assert "mean error of 1e-06, more than 1e-07" in over(comparison, mean=1e-7)[0]
    assert "PSNR of 40.0 dB, less than 41" in over(comparison, psnr=41)[0]
    nan = Comparison("", 0, 1, 2, outputs={"unit": {"y": compared(Error(math.inf, math.inf, 0, 0, -math.inf), floor)}})
    assert len(over(nan, 2, mean=1, psnr=1)) == 3
