"""Frames between key frames: moved, not faded."""

from __future__ import annotations

import numpy as np
import pytest

from pipeline.stages.interpolation import GRID, ROWS, Enlargement, between, displacement_field, fill_between, sampled
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
    assert np.abs(displacement_field(points, points)).max() == 0


def test_field_carries_the_keypoints_along() -> None:
    points = grid_points()[:, :2]
    field = displacement_field(points, points + np.float32([0.1, -0.05]))
    np.testing.assert_allclose(field[:, GRID // 2, GRID // 2], [0.1, -0.05], rtol=0.1)
    assert np.abs(field[:, 0, 0]).max() < 0.01


@pytest.mark.parametrize("size", [GRID, 100, 256])
def test_between_nodes_a_plane_is_linear_and_beyond_them_held(size: int) -> None:
    nodes = (np.arange(GRID, dtype=np.float32) + 0.5) / GRID
    planes = np.stack([2 * nodes[None] - nodes[:, None], np.broadcast_to(nodes, (GRID, GRID))])
    pixels = np.clip((np.arange(size) + 0.5) / size, nodes[0], nodes[-1])
    rows = slice(3, 40)
    made = Enlargement(size).rows(planes.astype(np.float32), rows)
    np.testing.assert_allclose(made[0], 2 * pixels[None] - pixels[rows, None], atol=1e-5)
    np.testing.assert_allclose(made[1], np.broadcast_to(pixels, made[1].shape), atol=1e-5)


def test_a_picture_is_sampled_between_its_pixels_and_its_edges_are_held() -> None:
    planes = np.random.default_rng(0).random((3, 9, 9), np.float32)
    x, y = np.float32([[2, 2.25, -3, 8, 20]]), np.float32([[1, 1.5, 4, 8, -1]])
    out = np.empty((3, 1, 5), np.float32)
    sampled(planes, x, y, out)
    row = [(1 - part) * planes[:, :, 2] + part * planes[:, :, 3] for part in (0, 0.25)]
    wanted = [row[0][:, 1], (row[1][:, 1] + row[1][:, 2]) / 2, planes[:, 4, 0], planes[:, 8, 8], planes[:, 0, 8]]
    np.testing.assert_allclose(out[:, 0].T, wanted, atol=1e-6)


@pytest.mark.parametrize("size", [ROWS - 3, ROWS, 2 * ROWS + 5])
def test_a_picture_of_any_size_that_stands_still_is_returned(size: int) -> None:
    image = np.random.default_rng(0).integers(0, 256, (size, size, 3), np.uint8)
    still = [KeyFrame(index, image, grid_points()) for index in (0, 2)]
    np.testing.assert_array_equal(between(*still, 1, grid_points()), image)


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
