from __future__ import annotations

import io
import re
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageOps
from tests.pictures import FORMATS, encode, paste_head, textured, turned, with_alpha

from pipeline.errors import FaceTooSmallError, NoFaceError, PortraitError, SeveralFacesError
from pipeline.faces.crop import CropSpec
from pipeline.faces.finder import Face, FaceFinder
from pipeline.faces.sampling import sample_square
from pipeline.stages.portrait import choose_face, fit, prepare_portrait
from pipeline.values import Portrait

U8 = NDArray[np.uint8]
DATA = Path(__file__).parents[2] / "data"


class Prepare:
    """prepare_portrait for pixels, bytes or a path."""

    def __init__(self, finder: FaceFinder, spec: CropSpec) -> None:
        self.finder, self.spec = finder, spec

    def __call__(self, source: U8 | bytes | Path, **options: object) -> Portrait:
        if isinstance(source, np.ndarray):
            source = encode(Image.fromarray(source), "BMP")
        opened = source if isinstance(source, Path) else io.BytesIO(source)
        return prepare_portrait(opened, self.finder, self.spec, **options)


@pytest.fixture(scope="module")
def prepare(face_finder: FaceFinder, crop_spec: CropSpec) -> Prepare:
    return Prepare(face_finder, crop_spec)


@pytest.fixture(scope="module")
def sample(prepare: Prepare, sample_portrait_path: Path) -> Portrait:
    return prepare(sample_portrait_path)


def assert_same_face(portrait: Portrait, sample: Portrait, tolerance: float = 0.02) -> None:
    """The landmarks lie in the crop as the sample's do; 0.02 crop units are 5 of 512 pixels."""
    assert np.abs(portrait.landmarks[:, :2] - sample.landmarks[:, :2]).mean() < tolerance


def two_faces(sample_picture: U8) -> U8:
    picture = textured(700, 400, seed=3)
    paste_head(picture, sample_picture, 120, 380, 60)
    paste_head(picture, sample_picture, 80, 20, 120)
    return picture


# What a portrait holds


def test_sample(sample: Portrait, sample_picture: U8) -> None:
    assert (sample.picture == sample_picture).all()
    assert not sample.shrunk
    assert sample.stored_size == (512, 512)
    assert np.abs(np.array(sample.face_box) - (178, 85, 274, 181)).max() <= 2
    assert sample.pixels.shape == (512, 512, 3)
    assert (sample.landmarks.shape, sample.landmarks.dtype) == ((478, 3), np.float32)
    outer_eyes, chin = sample.landmarks[[33, 263]], sample.landmarks[152]
    assert abs(outer_eyes[0, 1] - outer_eyes[1, 1]) < 0.02  # level
    assert abs(outer_eyes[:, 0].mean()) < 0.03
    assert 0.4 < chin[1] < 0.8
    width = sample.landmarks[:, 0].max() - sample.landmarks[:, 0].min()
    assert 0.41 < width / 2 < 0.45  # contracts.md §9
    assert sample.landmarks[1, 2] < sample.landmarks[[234, 454], 2].min()  # the nose is nearest


def test_crop_and_landmarks_lie_where_the_face_is(sample: Portrait, sample_picture: U8) -> None:
    again = sample_square(sample_picture, sample.crop, 512)
    assert (again == sample.pixels).all()
    x, y = sample.crop.matrix[:, :2] @ sample.landmarks[468, :2] + sample.crop.matrix[:, 2]
    pupil = sample_picture[int(y), int(x)]
    cheek = sample_picture[int(y) + 15, int(x)]
    assert pupil.mean() < 0.6 * cheek.mean()


def test_twice_the_same(prepare: Prepare, sample: Portrait, sample_portrait_path: Path) -> None:
    again = prepare(sample_portrait_path)
    assert (again.landmarks == sample.landmarks).all()
    assert (again.pixels == sample.pixels).all()
    assert (again.crop.matrix == sample.crop.matrix).all()


# Sizes


def test_large_photo_is_cropped_at_its_full_resolution(prepare: Prepare, sample: Portrait, sample_picture: U8) -> None:
    """The crop's pixels do not come from the shrunken picture, so 4K photos do not turn blurry."""
    large = np.asarray(Image.fromarray(sample_picture).resize((3840, 3840), Image.Resampling.BICUBIC)).copy()
    stripes = (np.arange(3840) // 6 % 2 * 60).astype(np.uint8)  # a period is four pixels of the crop, 1.5 of the picture
    large = np.clip(large.astype(int) + stripes[:, None, None], 0, 255).astype(np.uint8)
    portrait = prepare(large, max_side=480)
    assert portrait.shrunk
    assert portrait.picture.shape == (480, 480, 3)
    assert portrait.stored_size == (3840, 3840)
    assert_same_face(portrait, sample)
    blurry = sample_square(portrait.picture, portrait.crop, 512)
    detail, blurred = (np.abs(np.diff(p[200:300, 200:300].astype(int), axis=0)).mean() for p in (portrait.pixels, blurry))
    assert detail > 3 * blurred


def test_crop_refers_to_the_shrunken_picture(prepare: Prepare, sample_picture: U8) -> None:
    portrait = prepare(np.asarray(Image.fromarray(sample_picture).resize((1501, 1501))), max_side=1000)
    assert portrait.picture.shape == (1000, 1000, 3)
    shown = sample_square(portrait.picture, portrait.crop, 512)
    assert np.abs(shown.astype(int) - portrait.pixels).mean() < 3


@pytest.mark.parametrize(
    ("size", "limit", "wanted"),
    [
        ((512, 512), 1280, (512, 512)),
        ((511, 333), 1280, (510, 332)),
        ((1280, 721), 1280, (1280, 720)),
        ((1281, 721), 1280, (1280, 720)),
        ((400, 600), 128, (84, 128)),
        ((600, 400), 129, (128, 84)),
        ((3000, 5), 100, (100, 2)),
    ],
)
def test_fit(size: tuple[int, int], limit: int, wanted: tuple[int, int]) -> None:
    picture, factor = fit(textured(*size), limit)
    assert picture.shape == (wanted[1], wanted[0], 3)
    assert factor == min(1, (limit // 2 * 2) / max(size))


def test_fit_loses_an_odd_row_without_resampling() -> None:
    stored = textured(101, 51)
    assert (fit(stored, 1280)[0] == stored[:50, :100]).all()


def test_fit_resizes_both_sides_alike() -> None:
    """A grating of 20 pixels keeps its place over the whole length of either side."""
    stored = np.full((909, 1803, 3), 128, np.uint8)
    stored[:, 1800:] = 0
    stored[906:] = 0
    picture, factor = fit(stored, 600)
    dark_from = [int(np.argmax(line < 64)) or len(line) for line in (picture[10, :, 0], picture[:, 10, 0])]
    assert abs(dark_from[0] - 1800 * factor) <= 1
    assert abs(dark_from[1] - 906 * factor) <= 1


# Files


@pytest.mark.parametrize("name", ["CMYK JPEG", "16-bit grey PNG", "palette PNG with transparency", "AVIF", "animated GIF"])
def test_formats_give_the_same_face(prepare: Prepare, sample: Portrait, sample_picture: U8, name: str) -> None:
    assert_same_face(prepare(FORMATS[name][0](sample_picture)), sample)


def test_phone_photo_stored_rotated(prepare: Prepare, sample: Portrait, sample_picture: U8) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    stored = Image.fromarray(np.ascontiguousarray(np.rot90(sample_picture[:400], 1)))
    portrait = prepare(encode(stored, "JPEG", quality=95, exif=exif))
    assert portrait.stored_size == (512, 400)
    assert_same_face(portrait, sample)


def test_transparency_does_not_bleed_into_the_face(prepare: Prepare, sample: Portrait, sample_picture: U8) -> None:
    """Hidden red beside the face; shrinking before compositing would draw a red edge."""
    large = np.asarray(Image.fromarray(sample_picture).resize((2048, 2048), Image.Resampling.BICUBIC))
    alpha = np.zeros((2048, 2048), np.uint8)
    alpha[:1000, 450:1400] = 255
    hidden = np.where(alpha[..., None] > 0, large, np.uint8([255, 0, 0]))
    file = encode(Image.fromarray(with_alpha(hidden, alpha)), "PNG", compress_level=1)
    portrait = prepare(file, background=(0, 0, 200), max_side=512)
    assert_same_face(portrait, sample)
    assert (portrait.picture[300:, :] == (0, 0, 200)).all()
    edge = portrait.picture[:240, 108:117].astype(int)
    assert (edge[..., 0] <= sample_picture[:240, 108:117, 0].astype(int) + 30).all()


def test_unreadable_file_is_named(prepare: Prepare, tmp_path: Path) -> None:
    path = tmp_path / "portrait.jpg"
    path.write_bytes(b"hello")
    with pytest.raises(PortraitError, match=re.escape(f"{path} is not a picture")):
        prepare(path)


# Faces


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
def test_tilted_head_gives_a_level_crop(
    prepare: Prepare, sample: Portrait, sample_picture: U8, degrees: int
) -> None:
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
        PortraitError, match=r"is cut off by the picture's edge \(\d\d% of it .*\); choose a picture that shows the whole"
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
        pen.ellipse((4 * 223 - 70, 4 * 150 - 60, 4 * 223 + 70, 4 * 150 + 60), fill=(60, 15, 20), outline=(180, 70, 70), width=16)
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


def test_rough_drawing_works(prepare: Prepare) -> None:
    """Two dots, an arc and a circle: the landmarks lie on them."""
    image = Image.new("RGB", (500, 500), (255, 255, 255))
    pen = ImageDraw.Draw(image)
    pen.ellipse((100, 100, 400, 400), outline=(0, 0, 0), width=6)
    for x in (190, 310):
        pen.ellipse((x - 12, 200, x + 12, 224), fill=(0, 0, 0))
    pen.arc((170, 180, 330, 340), 30, 150, fill=(0, 0, 0), width=6)
    portrait = prepare(np.asarray(image))
    points = portrait.landmarks[:, :2] @ portrait.crop.matrix[:, :2].T + portrait.crop.matrix[:, 2]
    assert np.abs(points[[468, 473]] - [(190, 212), (310, 212)]).max() < 10
    assert abs(points[14, 1] - 338) < 12


@pytest.mark.parametrize("shape", ["house", "circle", "cross"])
def test_drawing_without_a_face(prepare: Prepare, shape: str) -> None:
    image = Image.new("RGB", (500, 500), (255, 255, 255))
    pen = ImageDraw.Draw(image)
    lines = {
        "house": [(100, 400, 100, 200), (100, 200, 250, 100), (250, 100, 400, 200), (400, 200, 400, 400), (100, 400, 400, 400)],
        "circle": [],
        "cross": [(250, 50, 250, 450), (100, 200, 400, 200)],
    }[shape]
    for line in lines:
        pen.line(line, fill=(0, 0, 0), width=8)
    if shape == "circle":
        pen.ellipse((100, 100, 400, 400), outline=(0, 0, 0), width=8)
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
