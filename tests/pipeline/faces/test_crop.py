from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from pipeline.errors import PackError
from pipeline.faces.crop import CropSpec, face_crop, in_crop_units
from pipeline.faces.finder import FaceFinder
from pipeline.packs.registry import SHIPPED_REGISTRY, read_registry
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


@pytest.mark.parametrize("turn", [0, 12], ids=["upright", "tilted"])
@pytest.mark.parametrize("mirrored", [False, True], ids=["as it is", "mirrored"])
def test_a_frontal_face_is_as_wide_in_the_published_crop_as_in_training(
    turn: float, mirrored: bool, face_finder: FaceFinder, sample_picture: NDArray[np.uint8]
) -> None:
    """LivePortrait's: face width over crop width near 0.43, by the shipped manifest and our landmarks; the width is
    that between the outermost points at the height of the ears."""
    manifest = read_registry(SHIPPED_REGISTRY).entry("timeline-studio").manifest
    spec = CropSpec.read(manifest.root.section("crop"))
    picture = Image.fromarray(sample_picture[:, ::-1] if mirrored else sample_picture)
    (face,) = face_finder.find(np.asarray(picture.rotate(turn, Image.Resampling.BICUBIC)))
    units = in_crop_units(face.points, face_crop(face.points, spec))
    assert np.linalg.norm(units[234, :2] - units[454, :2]) / 2 == pytest.approx(0.43, abs=0.01)
    assert abs(units[[234, 454], 0].mean()) < 0.05


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
