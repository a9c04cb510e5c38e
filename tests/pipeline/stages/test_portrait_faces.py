"""Which face, and what faces can be used: right results, or errors that say what to do."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageOps

from pipeline.errors import FaceTooSmallError, NoFaceError, PortraitError, SeveralFacesError
from pipeline.faces.finder import Face, FaceFinder
from pipeline.stages.portrait import choose_face, prepare_portrait
from pipeline.values import Portrait
from tests.pictures import paste_head, textured, turned
from tests.portraits import Prepare, assert_same_face

U8 = NDArray[np.uint8]
DATA = Path(__file__).parents[2] / "data"


def two_faces(sample_picture: U8) -> U8:
    picture = textured(700, 400, seed=3)
    paste_head(picture, sample_picture, 120, 380, 60)
    paste_head(picture, sample_picture, 80, 20, 120)
    return picture


def test_no_face(prepare: Prepare) -> None:
    with pytest.raises(NoFaceError) as caught:
        prepare(textured(900, 700))
    assert str(caught.value) == (
        "no face was found in the portrait; choose a picture of a person who looks towards the camera, "
        "upright, with the whole face visible and lit"
    )


@pytest.mark.parametrize("size", [(1, 1), (3, 400), (64, 64)])
def test_no_face_in_tiny_pictures(prepare: Prepare, size: tuple[int, int]) -> None:
    with pytest.raises(NoFaceError):
        prepare(np.full((*size, 3), 200, np.uint8))


@pytest.mark.parametrize("side", [20, 40, 60])
def test_small_face(prepare: Prepare, sample_picture: U8, side: int) -> None:
    picture = textured(500, 400)
    paste_head(picture, sample_picture, side, 200, 100)
    with pytest.raises(FaceTooSmallError) as caught:
        prepare(picture)
    found = re.fullmatch(
        r"the face in the portrait is too small: (\d+) pixels at \(.*\), at least 64 are needed; "
        r"use the picture at its full resolution or one taken from nearer",
        str(caught.value),
    )
    assert found is not None
    assert abs(int(found[1]) - side) <= 2


def test_far_face_in_a_large_picture(prepare: Prepare, sample: Portrait, sample_picture: U8) -> None:
    picture = textured(3000, 2000)
    box = paste_head(picture, sample_picture, 70, 2500, 1500)
    portrait = prepare(picture)
    assert np.abs(np.array(portrait.face_box) - box).max() <= 4
    assert_same_face(portrait, sample)


@pytest.mark.parametrize("light", [0.5, 0.12])
def test_shadowed_face(prepare: Prepare, sample: Portrait, sample_picture: U8, light: float) -> None:
    assert_same_face(prepare((sample_picture * light).astype(np.uint8)), sample)


def test_several_faces_are_listed_from_left_to_right(prepare: Prepare, sample_picture: U8) -> None:
    with pytest.raises(SeveralFacesError) as caught:
        prepare(two_faces(sample_picture))
    left, right = caught.value.boxes
    assert left[0] < left[2] < right[0] < right[2]
    assert str(caught.value) == (
        f"the portrait shows 2 faces; choose one with --face N, N from left to right: 1: {left}; 2: {right} "
        "(left, top, right, bottom in pixels)"
    )


def test_a_face_is_chosen_by_number(prepare: Prepare, sample: Portrait, sample_picture: U8) -> None:
    picture = two_faces(sample_picture)
    sides = []
    for number in (1, 2):
        portrait = prepare(picture, face=number)
        assert_same_face(portrait, sample)
        sides.append(portrait.face_box[2] - portrait.face_box[0])
    assert np.abs(np.array(sides) - (80, 120)).max() <= 3
    for number in (0, 3, -1):
        with pytest.raises(SeveralFacesError, match=rf"shows 2 faces, but face {number} was asked for; .*--face N"):
            prepare(picture, face=number)


def test_the_only_face_may_be_named(prepare: Prepare, sample: Portrait, sample_portrait_path: Path) -> None:
    assert (prepare(sample_portrait_path, face=1).pixels == sample.pixels).all()
    with pytest.raises(SeveralFacesError, match="shows 1 face, but face 2 was asked for"):
        prepare(sample_portrait_path, face=2)


def test_bystanders_too_small_to_use_do_not_count(prepare: Prepare, sample: Portrait, sample_picture: U8) -> None:
    picture = textured(700, 400, seed=3)
    paste_head(picture, sample_picture, 120, 380, 60)
    paste_head(picture, sample_picture, 40, 100, 120)
    assert_same_face(prepare(picture), sample)


def test_profile(prepare: Prepare, sample_picture: U8) -> None:
    with pytest.raises(NoFaceError, match="looks towards the camera"):
        prepare(turned(sample_picture, 75))


def test_half_turned_face_works(prepare: Prepare, sample_picture: U8) -> None:
    portrait = prepare(turned(sample_picture, 30))
    nose, cheeks = portrait.landmarks[1, 0], portrait.landmarks[[234, 454], 0]
    assert cheeks[1] - nose < 0.8 * (nose - cheeks[0])


def test_face_turned_too_far(prepare: Prepare, sample_portrait_path: Path) -> None:
    """The landmark model follows some heads beyond what the generator can turn back."""
    finder = prepare.finder

    class Turned(FaceFinder):
        def find(self, picture: U8) -> list[Face]:
            points = finder.find(picture)[0].points - (226, 130, 0)
            c, s = np.cos(np.radians(50)), np.sin(np.radians(50))
            points = points @ np.array([[c, 0, s], [0, 1, 0], [-s, 0, c]]) + (226, 130, 0)
            return [finder._face(picture, points, 10.0)]

    with pytest.raises(PortraitError, match=r"is turned (49|50|51) degrees to the side; choose .* camera \(45 degrees"):
        prepare_portrait(sample_portrait_path, Turned(finder.detector, finder.landmarks, finder.spec), prepare.spec)


@pytest.mark.parametrize("degrees", [-40, -20, 20, 40])
def test_tilted_head_gives_a_level_crop(prepare: Prepare, sample: Portrait, sample_picture: U8, degrees: int) -> None:
    portrait = prepare(np.asarray(Image.fromarray(sample_picture).rotate(degrees, Image.Resampling.BICUBIC)))
    assert_same_face(portrait, sample)


def test_face_at_the_border(prepare: Prepare, sample: Portrait, sample_picture: U8) -> None:
    """The crop reaches beyond the picture, whose edge is repeated there."""
    portrait = prepare(np.ascontiguousarray(sample_picture[88:, 180:]))
    assert portrait.face_box[:2] == (0, 0)
    assert_same_face(portrait, sample, 0.03)
    outside = portrait.pixels[40, 200:300].astype(int)
    assert outside.min() > 0  # no black beyond the edge
    assert np.abs(outside - portrait.pixels[20, 200:300]).mean() < 10


@pytest.mark.parametrize(("left", "top"), [(200, 0), (0, 98)])
def test_face_cut_off_by_the_border(prepare: Prepare, sample_picture: U8, left: int, top: int) -> None:
    with pytest.raises(
        PortraitError,
        match=r"is cut off by the picture's edge \(\d\d% of it .*\); choose a picture that shows the whole",
    ):
        prepare(np.ascontiguousarray(sample_picture[top:, left:]))


def drawn(sample_picture: U8, draw: str) -> U8:
    """The sample, with something painted over its face at four times the size."""
    image = Image.fromarray(sample_picture).resize((2048, 2048), Image.Resampling.BICUBIC)
    pen = ImageDraw.Draw(image)
    eyes = [(203, 100), (249, 103)]
    for x, y in eyes if draw in ("glasses", "closed eyes") else []:
        if draw == "glasses":
            pen.ellipse((4 * x - 68, 4 * y - 52, 4 * x + 68, 4 * y + 52), outline=(20, 20, 20), width=10)
        else:
            pen.ellipse((4 * x - 48, 4 * y - 22, 4 * x + 48, 4 * y + 22), fill=(214, 160, 140))
            pen.arc((4 * x - 44, 4 * y - 30, 4 * x + 44, 4 * y + 18), 20, 160, fill=(60, 35, 30), width=7)
    if draw == "glasses":
        pen.line((4 * 220, 400, 4 * 232, 404), fill=(20, 20, 20), width=10)
    if draw == "open mouth":
        pen.ellipse(
            (4 * 223 - 70, 4 * 150 - 60, 4 * 223 + 70, 4 * 150 + 60), fill=(60, 15, 20), outline=(180, 70, 70), width=16
        )
    return np.asarray(image.resize((1024, 1024), Image.Resampling.LANCZOS))


@pytest.mark.parametrize("draw", ["glasses", "closed eyes", "open mouth"])
def test_glasses_closed_eyes_open_mouth(prepare: Prepare, sample: Portrait, sample_picture: U8, draw: str) -> None:
    portrait = prepare(drawn(sample_picture, draw))
    assert_same_face(portrait, sample, 0.04)
    gap = np.linalg.norm(portrait.landmarks[13, :2] - portrait.landmarks[14, :2])
    eye = np.linalg.norm(portrait.landmarks[159, :2] - portrait.landmarks[145, :2])
    resting_eye = np.linalg.norm(sample.landmarks[159, :2] - sample.landmarks[145, :2])
    assert (gap > 0.1) == (draw == "open mouth")
    assert (eye < 0.8 * resting_eye) == (draw == "closed eyes")


def test_drawing_like_a_photo_works(prepare: Prepare, sample: Portrait, sample_picture: U8) -> None:
    flat = ImageOps.posterize(Image.fromarray(sample_picture), 2)
    assert_same_face(prepare(np.asarray(flat)), sample, 0.03)


@pytest.mark.parametrize("shape", ["house", "smiley", "cross"])
def test_rough_drawing_has_no_face(prepare: Prepare, shape: str) -> None:
    image = Image.new("RGB", (500, 500), (255, 255, 255))
    pen = ImageDraw.Draw(image)
    lines = {
        "house": [
            (100, 400, 100, 200),
            (100, 200, 250, 100),
            (250, 100, 400, 200),
            (400, 200, 400, 400),
            (100, 400, 400, 400),
        ],
        "smiley": [],
        "cross": [(250, 50, 250, 450), (100, 200, 400, 200)],
    }[shape]
    for line in lines:
        pen.line(line, fill=(0, 0, 0), width=8)
    if shape == "smiley":
        pen.ellipse((100, 100, 400, 400), outline=(0, 0, 0), width=6)
        pen.ellipse((178, 200, 202, 224), fill=(0, 0, 0))
        pen.ellipse((298, 200, 322, 224), fill=(0, 0, 0))
        pen.arc((170, 180, 330, 340), 30, 150, fill=(0, 0, 0), width=6)
    with pytest.raises(NoFaceError):
        prepare(np.asarray(image))


def test_animal_has_no_face(prepare: Prepare) -> None:
    with pytest.raises(NoFaceError, match=r"no face was found in .*cat\.jpg; choose a picture of a person"):
        prepare(DATA / "cat.jpg")


def test_choose_face_names_the_largest_of_the_small() -> None:
    points = np.zeros((478, 3))
    faces = [
        Face(points, 20.0, np.array([x, 50.0]), side, (int(x), 30, int(x + side), 60), 0.0, 0.0)
        for x, side in ((10.0, 30.0), (100.0, 63.4), (200.0, 20.0))
    ]
    with pytest.raises(FaceTooSmallError, match=r"in a\.png is too small: 63 pixels at \(100, 30, 163, 60\)"):
        choose_face(faces, None, "a.png", 64)
