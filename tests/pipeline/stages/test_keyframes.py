"""Which frames are rendered."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from pipeline.packs.specs import KeyFrameSpec
from pipeline.stages.keyframes import plan_key_frames

SPEC = KeyFrameSpec(fps=2, extra_percentile=62, extra_gap=0.16, greatest_miss=100, chunk=8)


def mouth_at(positions: np.ndarray):
    """A mouth of one point whose x is given for every frame."""
    return lambda frame: np.array([[positions[frame], 0, 0]], np.float32)


def test_every_frame_when_the_rate_is_the_films() -> None:
    keys = plan_key_frames(mouth_at(np.zeros(50)), 50, Fraction(25), 25, SPEC)
    np.testing.assert_array_equal(keys, np.arange(50))


@pytest.mark.parametrize("count", [1, 2, 3, 24, 25, 26, 251])
def test_first_and_last_always(count: int) -> None:
    keys = plan_key_frames(mouth_at(np.zeros(count)), count, Fraction(25), 2, SPEC)
    assert keys[0] == 0
    assert keys[-1] == count - 1
    assert (np.diff(keys) > 0).all()


def test_even_grid_does_not_drift() -> None:
    count = 30000
    keys = plan_key_frames(mouth_at(np.zeros(count)), count, Fraction(30000, 1001), 2, SPEC)
    ideal = np.arange(len(keys)) * (30000 / 1001) / 2
    assert np.abs(keys[:-1] - ideal[:-1]).max() <= 0.5


def test_still_mouth_needs_no_extras() -> None:
    keys = plan_key_frames(mouth_at(np.zeros(100)), 100, Fraction(25), 1, SPEC)
    np.testing.assert_array_equal(keys, [0, 25, 50, 75, 99])


def test_extras_where_the_mouth_moves_fastest() -> None:
    positions = np.zeros(100)
    positions[62:] = 1.0
    keys = plan_key_frames(mouth_at(positions), 100, Fraction(25), 1, SPEC)
    np.testing.assert_array_equal(keys, [0, 25, 50, 62, 75, 99])


def test_extras_keep_their_distance() -> None:
    positions = np.cumsum(np.random.default_rng(1).random(500))
    keys = plan_key_frames(mouth_at(positions), 500, Fraction(25), 1, SPEC)
    extras = sorted(set(keys.tolist()) - set(range(0, 500, 25)) - {499})
    assert len(extras) > 20
    for extra in extras:
        others = keys[keys != extra]
        assert np.abs(others - extra).min() >= 4


def test_a_mouth_that_no_key_frame_shows_is_rendered() -> None:
    positions = np.zeros(100)
    # Opens and closes within the gap around the grid's frame 25, where no extra may lie.
    positions[26:31] = [0.5, 0.9, 1.0, 0.6, 0.1]
    spec = replace(SPEC, greatest_miss=0.3)
    keys = plan_key_frames(mouth_at(positions), 100, Fraction(25), 1, spec)
    assert 28 in keys
    for before, after in pairwise(keys.tolist()):
        for frame in range(before, after):
            ends = np.abs(positions[frame] - positions[[before, after]])
            assert ends.min() <= 0.3
