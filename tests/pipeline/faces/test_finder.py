from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from pipeline.faces.finder import Face, FaceFinder
from tests.pictures import HEAD, SAMPLE_BOX_SIDE, paste_head, textured

U8 = NDArray[np.uint8]
Boxes = list[tuple[float, float, float, float]]


def assert_found(faces: list[Face], boxes: Boxes) -> None:
    """These faces and no others, each box to within 4 % of its side."""
    boxes = sorted(boxes, key=lambda box: box[0] + box[2])
    assert len(faces) == len(boxes), [face.box for face in faces]
    for face, box in zip(faces, boxes, strict=True):
        assert np.abs(np.array(face.box) - box).max() <= 0.04 * face.side + 1
        assert face.side >= 62


def test_any_face_of_64_pixels_in_24_megapixels(face_finder: FaceFinder, sample_picture: U8) -> None:
    """In corners, across the seams of tiles, of sizes from 64 pixels to a quarter of the picture."""
    picture = textured(6000, 4000)

    def place(side: float, x: float, y: float) -> tuple[float, float, float, float]:
        size = HEAD * side / SAMPLE_BOX_SIDE
        return paste_head(picture, sample_picture, side, int(x * (6000 - size)), int(y * (4000 - size)))

    boxes = [
        place(64, 0, 0),
        place(64, 1, 0),
        place(66, 0, 1),
        place(72, 1, 1),
        place(64, 0.345, 0.02),
        place(70, 0.515, 0.2),
        place(85, 0.172, 0.08),
        place(100, 0.69, 0.05),
        place(128, 0.86, 0.3),
        place(190, 0.02, 0.33),
        place(300, 0.2, 0.3),
        place(450, 0.95, 0.9),
        place(950, 0.4, 1),
    ]
    assert_found(face_finder.find(picture), boxes)


@pytest.mark.parametrize("seed", [1, 2])
def test_faces_at_chance_places(face_finder: FaceFinder, sample_picture: U8, seed: int) -> None:
    rng = np.random.default_rng(seed)
    picture = textured(2400, 1600, seed)
    boxes = []
    for row in range(3):
        for column in range(4):
            side = rng.uniform(64, 180)
            room = np.array([600, 530]) - HEAD * side / SAMPLE_BOX_SIDE
            left, top = (rng.random(2) * room + (column * 600, row * 530)).astype(int)
            boxes.append(paste_head(picture, sample_picture, side, left, top))
    assert_found(face_finder.find(picture), boxes)


def test_a_face_that_fills_the_picture(face_finder: FaceFinder, sample_picture: U8) -> None:
    close = np.asarray(sample_picture[75:190, 170:285])
    faces = face_finder.find(np.kron(close, np.ones((12, 12, 1), np.uint8)))
    assert len(faces) == 1
    assert abs(faces[0].side - 12 * SAMPLE_BOX_SIDE) < 60


def test_nothing_in_texture_and_noise(face_finder: FaceFinder) -> None:
    noise = np.random.default_rng(0).integers(0, 256, (700, 900, 3), np.uint8)
    assert face_finder.find(textured(1500, 1000)) == []
    assert face_finder.find(noise) == []


@pytest.mark.parametrize("side", [1300, 2000, 3000])
def test_enlarging_brings_no_false_faces(face_finder: FaceFinder, sample_picture: U8, side: int) -> None:
    """At some sizes a knob on the suit looks like a small face to both models; its detector logit stays low."""
    large = np.asarray(Image.fromarray(sample_picture).resize((side, side), Image.Resampling.BICUBIC))
    faces = face_finder.find(large)
    assert [round(face.side / side * 512 / SAMPLE_BOX_SIDE, 1) for face in faces] == [1.0]


def test_box_is_that_of_the_detector(face_finder: FaceFinder, sample_picture: U8) -> None:
    """BlazeFace itself draws (180, 82, 274, 176) on the sample."""
    face = face_finder.find(sample_picture)[0]
    assert abs(face.side - 94) < 3
    assert np.abs(np.array(face.box) - (180, 82, 274, 176)).max() <= 6
    assert face.yaw < 5
    assert face.outside == 0


def test_boxes_end_at_the_pictures_edge(face_finder: FaceFinder, sample_picture: U8) -> None:
    face = face_finder.find(np.ascontiguousarray(sample_picture[:160, 190:]))[0]
    left, top, right, bottom = face.box
    assert (left, bottom) == (0, 160)
    assert 0 < top < bottom
    assert 0 < right < 322
    assert 0.1 < face.outside < 0.5


def test_small_faces_are_noticed_where_there_is_no_other(face_finder: FaceFinder, sample_picture: U8) -> None:
    picture = textured(500, 400)
    box = paste_head(picture, sample_picture, 24, 300, 200)
    face = face_finder.find(picture)[0]
    assert np.abs(np.array(face.box) - box).max() <= 3
