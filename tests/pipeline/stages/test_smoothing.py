"""The head's moving average: its formula, what it leaves alone, and what the pack's default does to a nod."""

from __future__ import annotations

import numpy as np
import pytest

from pipeline.stages.smoothing import smoothed
from pipeline.values import Motion


def moving(angles: np.ndarray) -> Motion:
    """A motion whose seven smoothed rows and expression all follow `angles` [M]."""
    rows = np.repeat(angles.astype(np.float32)[:, None], 3, 1)
    return Motion(expression=rows, scale=rows[:, 0], translation=rows + 1, angles=rows + 2, fps=25.0)


def test_the_formula() -> None:
    values = np.random.default_rng(0).normal(size=50)
    expected = [values[0]]
    for value in values[1:]:
        expected.append(0.8 * expected[-1] + 0.2 * value)
    made = smoothed(moving(values), 0.8)
    np.testing.assert_allclose(made.scale, expected, atol=1e-6)
    np.testing.assert_allclose(made.translation[:, 2], np.add(expected, 1), atol=1e-6)
    np.testing.assert_allclose(made.angles[:, 0], np.add(expected, 2), atol=1e-6)


def test_the_expression_keeps_its_time() -> None:
    motion = moving(np.random.default_rng(1).normal(size=20))
    np.testing.assert_array_equal(smoothed(motion, 0.9).expression, motion.expression)


def test_none_changes_nothing() -> None:
    motion = moving(np.arange(5))
    assert smoothed(motion, 0) is motion


def test_a_longer_motion_begins_with_the_shorter_one() -> None:
    motion = moving(np.random.default_rng(2).normal(size=300))
    short = Motion(**{name: getattr(motion, name)[:110] for name in ("expression", "scale", "translation", "angles")},
                   fps=25.0)  # fmt: skip
    np.testing.assert_array_equal(smoothed(motion, 0.7).angles[:110], smoothed(short, 0.7).angles)


@pytest.mark.parametrize(
    ("share", "hertz", "kept"),
    [(0.5, 1, (0.93, 0.97)), (0.5, 2, (0.80, 0.84)), (0.5, 8, (0.35, 0.42)), (0.99, 1, (0.03, 0.05))],
)
def test_what_is_left_of_a_nod(share: float, hertz: float, kept: tuple[float, float]) -> None:
    """The default keeps nods (1 to 2 Hz) and takes tremble; the reference's 0.99 takes the nods."""
    time = np.arange(2000) / 25
    made = smoothed(moving(np.sin(2 * np.pi * hertz * time)), share).scale[1000:]
    assert kept[0] < np.abs(made).max() < kept[1]
