from __future__ import annotations

import numpy as np
import pytest

from pipeline.faces.sampling import sample_square, square
from pipeline.values import Crop
from tests.pictures import textured


def test_a_square_of_its_own_size_is_copied() -> None:
    picture = textured(90, 70)
    crop = square(np.array([50.0, 32.0]), 40, 0.0)
    assert (sample_square(picture, crop, 40) == picture[12:52, 30:70]).all()


def test_a_quarter_turn_is_exact() -> None:
    picture = textured(90, 70)
    crop = square(np.array([50.0, 32.0]), 40, np.pi / 2)
    # The square's x axis points down in the picture, its y axis to the left.
    wanted = picture[12:52, 30:70].transpose(1, 0, 2)[::-1]
    assert np.abs(sample_square(picture, crop, 40).astype(int) - wanted).max() <= 1


def test_beyond_the_picture_its_edge_is_repeated() -> None:
    picture = textured(60, 50)
    sampled = sample_square(picture, square(np.array([0.0, 0.0]), 40, 0.0), 40)
    assert (sampled[20:, 20:] == picture[:20, :20]).all()
    assert (sampled[:20, 20:] == picture[:1, :20]).all()
    assert (sampled[20:, :20] == picture[:20, :1]).all()


@pytest.mark.parametrize("size", [16, 64, 300])
@pytest.mark.parametrize("degrees", [0.0, 30.0])
def test_flat_stays_flat_even_far_outside(size: int, degrees: float) -> None:
    picture = np.full((40, 30, 3), (255, 130, 0), np.uint8)
    sampled = sample_square(picture, square(np.array([15.0, 20.0]), 200, np.radians(degrees)), size)
    assert (sampled == (255, 130, 0)).all()


@pytest.mark.parametrize("degrees", [0.0, 17.0])
def test_shrinking_is_antialiased(degrees: float) -> None:
    stripes = np.zeros((600, 600, 3), np.uint8)
    stripes[:, ::2] = 255
    sampled = sample_square(stripes, square(np.array([301.3, 299.2]), 400, np.radians(degrees)), 64)
    assert np.abs(sampled.astype(int) - 127.5).max() < 6


def test_places_are_kept_at_any_scale() -> None:
    """A ramp has its value at every place, so half a pixel of shift would show."""
    ramp = np.repeat(np.arange(200, dtype=np.uint8)[None, :, None], 200, axis=0).repeat(3, axis=2)
    for size in (20, 33, 100, 250):
        for left, side in ((40.0, 100.0), (40.3, 77.7)):
            crop = square(np.array([left + side / 2, 100.0]), side, 0.0)
            wanted = left + (np.arange(size) + 0.5) * side / size - 0.5
            error = sample_square(ramp, crop, size)[size // 2, :, 0] - wanted
            assert np.abs(error).max() < 1.1  # rounded twice
            assert abs(error.mean()) < 0.2


def test_square_maps_its_corners() -> None:
    crop = square(np.array([10.0, 20.0]), 4.0, np.pi / 2)
    assert crop.matrix[:, :2] @ [1, 0] + crop.matrix[:, 2] == pytest.approx([10, 22])
    assert isinstance(crop, Crop)
