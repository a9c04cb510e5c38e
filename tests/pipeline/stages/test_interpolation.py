"""Frames between key frames: moved, not faded."""

from __future__ import annotations

import numpy as np
import pytest

from pipeline.stages.interpolation import between, displacement_field, fill_between, warped
from pipeline.values import KeyFrame

SIZE = 128


def grid_points(count: int = 12) -> np.ndarray:
    """[count^2, 3] points over the middle of the crop."""
    axis = np.linspace(-0.5, 0.5, count, dtype=np.float32)
    x, y = np.meshgrid(axis, axis)
    return np.stack([x.ravel(), y.ravel(), 0 * x.ravel()], 1)


def disc(x: float) -> np.ndarray:
    """A white disc on black whose centre is at x (crop units)."""
    axis = (np.arange(SIZE) + 0.5) / SIZE * 2 - 1
    distance = np.hypot(axis[None] - x, axis[:, None])
    shade = np.clip((0.2 - distance) * 40 + 0.5, 0, 1) * 255
    return np.repeat(shade[..., None], 3, 2).astype(np.uint8)


def key(index: int, x: float) -> KeyFrame:
    return KeyFrame(index, disc(x), grid_points() + np.float32([x, 0, 0]))


def centre(image: np.ndarray) -> float:
    weight = image[..., 0].astype(float)
    axis = (np.arange(SIZE) + 0.5) / SIZE * 2 - 1
    return float((weight.sum(0) * axis).sum() / weight.sum())


def test_still_keypoints_give_a_still_field() -> None:
    points = grid_points()[:, :2]
    assert np.abs(displacement_field(points, points, SIZE)).max() == 0


def test_field_carries_the_keypoints_along() -> None:
    points = grid_points()[:, :2]
    field = displacement_field(points, points + np.float32([0.1, -0.05]), SIZE)
    np.testing.assert_allclose(field[SIZE // 2, SIZE // 2], [0.1, -0.05], rtol=0.1)
    assert np.abs(field[0, 0]).max() < 0.01


def test_zero_field_returns_the_picture() -> None:
    image = np.random.default_rng(0).integers(0, 256, (SIZE, SIZE, 3), np.uint8)
    np.testing.assert_array_equal(warped(image, np.zeros((SIZE, SIZE, 2), np.float32)), image)


def test_half_way_shows_one_disc_half_way() -> None:
    made = between(key(0, -0.1), key(10, 0.1), 5, grid_points())
    assert centre(made) == pytest.approx(0, abs=0.01)
    ghost = (disc(-0.1).astype(float) + disc(0.1)) / 2
    sharp = disc(0.0).astype(float)
    error, fade = np.abs(made - sharp).mean(), np.abs(ghost - sharp).mean()
    assert error < fade / 4
    grey = ((made[..., 0] > 80) & (made[..., 0] < 175)).mean()
    assert grey < 0.02


@pytest.mark.parametrize("frame", [0, 10])
def test_at_a_key_frame_it_is_the_key_frame(frame: int) -> None:
    ends = {0: key(0, -0.1), 10: key(10, 0.1)}
    made = between(ends[0], ends[10], frame, ends[frame].keypoints)
    np.testing.assert_array_equal(made, ends[frame].image)


def test_brightness_does_not_flicker() -> None:
    """Two equal pictures, moving keypoints: in-between frames are as bright as the key frames."""
    before, after = key(0, -0.1), key(10, 0.1)
    sums = [between(before, after, f, grid_points() + np.float32([-0.1 + 0.02 * f, 0, 0])).sum() for f in range(11)]
    assert max(sums) / min(sums) < 1.02


def test_all_frames_in_order_and_lazily() -> None:
    asked: list[int] = []

    def keypoints(frame: int) -> np.ndarray:
        asked.append(frame)
        return grid_points()

    def keys():
        for index in (0, 1, 4, 6):
            yield KeyFrame(index, disc(index / 100), grid_points())

    made = fill_between(keys(), keypoints)
    assert next(made)[0] == 0
    assert asked == []
    assert [frame for frame, _ in made] == [1, 2, 3, 4, 5, 6]
    assert asked == [2, 3, 5]


def test_one_key_frame_is_a_film() -> None:
    assert [frame for frame, _ in fill_between([key(0, 0)], lambda frame: grid_points())] == [0]
