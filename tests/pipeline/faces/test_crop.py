from __future__ import annotations

import numpy as np
import pytest

from pipeline.errors import PackError
from pipeline.faces.crop import CropSpec, face_crop, in_crop_units
from pipeline.packs.section import Section

SPEC = CropSpec(2.0, -0.1, 512, outline=(0, 1, 2, 3), right_eye=(4, 5), left_eye=(6, 7), mouth_corners=(8, 9))
POINTS = np.array(
    [
        *[(40, 60, 0), (140, 60, 0), (90, 30, 0), (90, 110, 5)],  # outline: 100 wide, 80 high
        *[(65, 50, 0), (75, 50, 0), (105, 50, 0), (115, 50, 0)],  # eyes
        *[(75, 90, 0), (105, 90, 0)],  # mouth
    ],
    np.float64,
)


def test_upright_face() -> None:
    """Side 2 x 100 around (90, 70), moved up by a tenth of the side."""
    crop = face_crop(POINTS, SPEC)
    assert crop.matrix == pytest.approx(np.array([[100, 0, 90], [0, 100, 50]]))


@pytest.mark.parametrize("degrees", [-50, -7, 33, 90, 180])
def test_it_turns_with_the_face(degrees: float) -> None:
    c, s = np.cos(np.radians(degrees)), np.sin(np.radians(degrees))
    turn = np.array([[c, -s], [s, c]])
    turned = POINTS.copy()
    turned[:, :2] = POINTS[:, :2] @ turn.T + (300, 200)
    crop, upright = face_crop(turned, SPEC), face_crop(POINTS, SPEC)
    assert crop.matrix[:, :2] == pytest.approx(turn @ upright.matrix[:, :2])
    assert crop.matrix[:, 2] == pytest.approx(turn @ upright.matrix[:, 2] + (300, 200))
    assert in_crop_units(turned, crop) == pytest.approx(in_crop_units(POINTS, upright), abs=1e-6)


def test_high_face_sets_the_side() -> None:
    points = POINTS.copy()
    points[3, 1] = 180
    crop = face_crop(points, SPEC)
    assert crop.matrix[0, 0] * 2 == pytest.approx(2 * 150)


def test_crop_units_and_back() -> None:
    crop = face_crop(POINTS @ [[0.8, 0.6, 0], [-0.6, 0.8, 0], [0, 0, 1]], SPEC)
    units = in_crop_units(POINTS, crop)
    assert units.dtype == np.float32
    back = units[:, :2] @ crop.matrix[:, :2].T + crop.matrix[:, 2]
    assert back == pytest.approx(POINTS[:, :2], abs=1e-4)
    assert units[3, 2] == pytest.approx(5 / 100)


def test_scaled_crop_is_the_same_square() -> None:
    assert face_crop(POINTS, SPEC).scaled(0.5, 0.5).matrix == pytest.approx(face_crop(POINTS * 0.5, SPEC).matrix)


def test_a_missing_field_is_named(embedded_manifest: Section) -> None:
    data = dict(embedded_manifest.section("crop").data)
    del data["outline"]
    with pytest.raises(PackError, match=r"crop\.outline must be a list of whole numbers"):
        CropSpec.read(Section(data, "crop"))
