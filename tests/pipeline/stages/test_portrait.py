"""The portrait as a value: picture, crop, landmarks, sizes, and files of many formats."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from pipeline.errors import PortraitError
from pipeline.faces.sampling import sample_square
from pipeline.stages.portrait import fit
from pipeline.values import Portrait
from tests.pictures import FORMATS, encode, textured, with_alpha
from tests.portraits import Prepare, assert_same_face

U8 = NDArray[np.uint8]


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
    assert 0.41 < width / 2 < 0.45  # as LivePortrait's crop
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


def test_large_photo_is_cropped_at_its_full_resolution(prepare: Prepare, sample: Portrait, sample_picture: U8) -> None:
    """The crop's pixels do not come from the shrunken picture, so 4K photos do not turn blurry."""
    large = np.asarray(Image.fromarray(sample_picture).resize((3840, 3840), Image.Resampling.BICUBIC)).copy()
    # A period is four pixels of the crop, but 1.5 of the picture, which cannot show it.
    stripes = (np.arange(3840) // 6 % 2 * 60).astype(np.uint8)
    large = np.clip(large.astype(int) + stripes[:, None, None], 0, 255).astype(np.uint8)
    portrait = prepare(large, max_side=480)
    assert portrait.shrunk
    assert portrait.picture.shape == (480, 480, 3)
    assert portrait.stored_size == (3840, 3840)
    assert_same_face(portrait, sample)
    blurry = sample_square(portrait.picture, portrait.crop, 512)
    detail, blurred = (
        np.abs(np.diff(p[200:300, 200:300].astype(int), axis=0)).mean() for p in (portrait.pixels, blurry)
    )
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


@pytest.mark.parametrize(
    "name", ["CMYK JPEG", "16-bit grey PNG", "palette PNG with transparency", "AVIF", "animated GIF"]
)
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
