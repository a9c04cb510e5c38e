from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from pipeline.faces.finder import FaceFinder
from pipeline.faces.landmarks import find_landmarks, square_of
from pipeline.faces.sampling import square
from tests.pictures import textured

U8 = NDArray[np.uint8]


def test_they_settle_on_the_same_points_from_any_start(face_finder: FaceFinder, sample_picture: U8) -> None:
    spec = face_finder.spec.landmarks
    starts = [((226, 130), 140, 0), ((236, 122), 180, 10), ((216, 140), 120, -15)]
    found = [
        find_landmarks(sample_picture, face_finder.landmarks, spec, square(np.array(c, float), side, np.radians(d)))
        for c, side, d in starts
    ]
    points = [f.points for f in found if f is not None]
    assert len(points) == 3
    for other in points[1:]:
        assert np.abs(other - points[0])[:, :2].mean() < 0.4
        assert np.abs(other - points[0])[:, :2].max() < 1.5


def test_known_places_on_the_sample(face_finder: FaceFinder, sample_picture: U8) -> None:
    """Read off the picture by eye, to two pixels: pupils, mouth corners, chin."""
    points = face_finder.find(sample_picture)[0].points[:, :2]
    by_eye = {468: (203, 100), 473: (249, 103), 61: (205, 143), 291: (243, 145), 152: (221, 178)}
    for index, place in by_eye.items():
        assert np.abs(points[index] - place).max() < 4, (index, points[index])


@pytest.mark.parametrize("picture", [textured(300, 300), np.full((300, 300, 3), 128, np.uint8)])
def test_no_face_no_landmarks(face_finder: FaceFinder, picture: U8) -> None:
    start = square(np.array([150.0, 150.0]), 140, 0.0)
    assert find_landmarks(picture, face_finder.landmarks, face_finder.spec.landmarks, start) is None


def test_a_square_beside_the_picture_has_no_face(face_finder: FaceFinder, sample_picture: U8) -> None:
    start = square(np.array([-20.0, 130.0]), 140, 0.0)
    assert find_landmarks(sample_picture, face_finder.landmarks, face_finder.spec.landmarks, start) is None


def test_the_next_square_is_level_with_the_eyes(face_finder: FaceFinder, sample_picture: U8) -> None:
    points = face_finder.find(sample_picture)[0].points
    crop = square_of(points, face_finder.spec.landmarks)
    across = points[263, :2] - points[33, :2]
    axis = crop.matrix[:, 0]
    assert axis[0] * across[1] - axis[1] * across[0] == pytest.approx(0, abs=1e-6)
    inside = (points[:, :2] - crop.matrix[:, 2]) @ np.linalg.inv(crop.matrix[:, :2]).T
    assert np.abs(inside).max() == pytest.approx(1 / face_finder.spec.landmarks.margin)
