from __future__ import annotations

import io
import warnings
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from pipeline.errors import PortraitError
from pipeline.stages.picture import open_picture, probe_picture
from tests.pictures import FORMATS, P3_TO_SRGB, display_p3_profile, encode, grey, png, png_header, with_alpha

U8 = NDArray[np.uint8]
GREY = (128, 128, 128)


@pytest.fixture(scope="module")
def pixels(sample_picture: U8) -> U8:
    """A part of the sample with sides that differ, one of them odd."""
    return np.ascontiguousarray(sample_picture[60:211, 140:340])


def opened(data: bytes, background: tuple[int, int, int] = GREY) -> U8:
    return open_picture(io.BytesIO(data), background)


def refused(source: Path | io.BytesIO) -> str:
    with pytest.raises(PortraitError) as caught:
        open_picture(source, GREY)
    return str(caught.value)


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_gives_the_same_picture(pixels: U8, name: str) -> None:
    make, loses_colour, tolerance = FORMATS[name]
    result = opened(make(pixels))
    wanted = grey(pixels) if loses_colour else pixels
    assert (result.dtype, result.shape) == (np.uint8, pixels.shape)
    assert np.abs(result.astype(int) - wanted).mean() <= tolerance


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP", "TIFF"])
def test_stored_rotated_comes_upright(pixels: U8, orientation: int, kind: str) -> None:
    # How a camera stores what it should show upright (EXIF 2.3, tag 274).
    store = {
        1: lambda p: p,
        2: lambda p: p[:, ::-1],
        3: lambda p: p[::-1, ::-1],
        4: lambda p: p[::-1],
        5: lambda p: p.transpose(1, 0, 2),
        6: lambda p: np.rot90(p, 1),
        7: lambda p: np.rot90(p, 2).transpose(1, 0, 2),
        8: lambda p: np.rot90(p, -1),
    }[orientation]
    exif = Image.Exif()
    exif[0x0112] = orientation
    image = Image.fromarray(np.ascontiguousarray(store(pixels)))
    options = {"JPEG": {"quality": 98}, "WEBP": {"lossless": True}}.get(kind, {})
    result = opened(encode(image, kind, exif=exif, **options))
    assert result.shape == pixels.shape
    assert np.abs(result.astype(int) - pixels).mean() < 2


def test_damaged_exif_leaves_the_picture_as_it_is(pixels: U8) -> None:
    data = encode(Image.fromarray(pixels), "JPEG", quality=98, exif=b"Exif\0\0II*\0\xff\xff\xff\x7fgarbage")
    assert np.abs(opened(data).astype(int) - pixels).mean() < 2


def test_transparent_parts_show_the_background(pixels: U8) -> None:
    alpha = np.zeros(pixels.shape[:2], np.uint8)
    alpha[:, 50:] = 255
    hidden = pixels.copy()
    hidden[:, :50] = (255, 0, 0)  # what many programs leave behind transparent pixels
    data = encode(Image.fromarray(with_alpha(hidden, alpha)), "PNG")
    for background in (GREY, (10, 200, 30)):
        result = opened(data, background)
        assert (result[:, :50] == background).all()
        assert (result[:, 50:] == pixels[:, 50:]).all()


def test_half_transparent_parts_are_mixed(pixels: U8) -> None:
    data = encode(Image.fromarray(with_alpha(pixels, 64)), "PNG")
    wanted = (pixels * 64.0 + 100 * 191.0) / 255
    assert np.abs(opened(data, (100, 100, 100)) - wanted).max() <= 1


def test_palette_grey_and_rgb_with_a_transparent_colour() -> None:
    palette = Image.new("P", (8, 8), 0)
    palette.putpalette([255, 0, 0, 0, 0, 255])
    palette.putpixel((3, 2), 1)
    half = np.zeros((8, 8, 3), np.uint8)
    half[:, 4:] = 200
    files = [
        (encode(palette, "PNG", transparency=0), (0, 0), (3, 2), (0, 0, 255)),
        (encode(Image.fromarray(half), "PNG", transparency=(0, 0, 0)), (0, 0), (5, 2), (200, 200, 200)),
        (encode(Image.fromarray(half[..., 0]), "PNG", transparency=0), (0, 0), (5, 2), (200, 200, 200)),
    ]
    for data, clear, solid, color in files:
        result = opened(data, (1, 2, 3))
        assert tuple(result[clear[1], clear[0]]) == (1, 2, 3)
        assert tuple(result[solid[1], solid[0]]) == color


def test_sixteen_bits_keep_the_upper_eight() -> None:
    steps = np.arange(0, 65536, 257, dtype=np.uint16).reshape(16, 16)
    wanted = np.arange(256).reshape(16, 16)
    assert (opened(png(steps, 0)) == wanted[..., None]).all()
    assert (opened(png(np.dstack([steps] * 3), 2)) == wanted[..., None]).all()


def test_display_p3_is_converted_to_srgb() -> None:
    colors = np.array([[[200, 120, 90], [90, 160, 90]], [[60, 80, 180], [128, 128, 128]]], np.uint8)
    data = encode(
        Image.fromarray(colors).resize((64, 64), Image.Resampling.NEAREST), "PNG", icc_profile=display_p3_profile()
    )
    linear = np.clip((colors / 255) ** 2.2 @ P3_TO_SRGB.T, 0, 1)
    wanted = np.where(linear > 0.0031308, 1.055 * linear ** (1 / 2.4) - 0.055, 12.92 * linear) * 255
    assert np.abs(opened(data)[16::32, 16::32] - wanted).max() < 3
    assert np.abs(wanted - colors).max() > 8


def test_transparent_picture_with_a_profile_keeps_its_background() -> None:
    image = Image.new("RGBA", (32, 32), (200, 120, 90, 255))
    image.paste((0, 0, 0, 0), (0, 0, 16, 32))
    result = opened(encode(image, "PNG", icc_profile=display_p3_profile()), (7, 77, 177))
    assert (result[:, :16] == (7, 77, 177)).all()
    assert np.abs(result[5, 20].astype(int) - (217, 117, 84)).max() < 4


@pytest.mark.parametrize("profile", [b"not a profile at all", display_p3_profile()[:200]])
def test_damaged_profile_is_passed_over(pixels: U8, profile: bytes) -> None:
    assert (opened(encode(Image.fromarray(pixels), "PNG", icc_profile=profile)) == pixels).all()


def test_profile_of_another_colour_space_is_passed_over(pixels: U8) -> None:
    data = encode(Image.fromarray(pixels).convert("L"), "PNG", icc_profile=display_p3_profile())
    assert (opened(data) == grey(pixels)).all()


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP", "GIF", "TIFF", "AVIF"])
def test_truncated_file(pixels: U8, tmp_path: Path, kind: str) -> None:
    data = encode(Image.fromarray(pixels), kind)
    path = tmp_path / "half.bin"
    path.write_bytes(data[: len(data) // 2])
    message = refused(path)
    assert str(path) in message
    assert "JPEG or PNG" in message
    assert "damaged" in message or "not a picture" in message


def test_text_named_jpg(tmp_path: Path) -> None:
    path = tmp_path / "me.jpg"
    path.write_text("Dear all,\n" * 100)
    assert refused(path) == (
        f"{path} is not a picture that can be read (JPEG, PNG, WebP, AVIF, TIFF, GIF and BMP can); "
        "save it as JPEG or PNG and use that"
    )


@pytest.mark.parametrize("brand", [b"heic", b"heix", b"mif1", b"hevc"])
def test_heic_says_to_convert(tmp_path: Path, brand: bytes) -> None:
    path = tmp_path / "IMG_0001.HEIC"
    path.write_bytes(b"\0\0\0\x18ftyp" + brand + b"\0\0\0\0mif1heic" + b"\0" * 500)
    assert refused(path) == f"{path} is a HEIC picture, which talkreel cannot read; save it as JPEG or PNG and use that"


def test_empty_missing_and_folder(tmp_path: Path) -> None:
    empty = tmp_path / "empty.png"
    empty.touch()
    assert refused(empty) == f"{empty} is empty (0 bytes); choose another picture"
    gone = tmp_path / "gone.png"
    assert refused(gone) == f"{gone} does not exist; check the path of the portrait"
    assert refused(tmp_path) == f"{tmp_path} is a folder; name the picture file in it"
    assert "cannot be read (File name too long)" in refused(tmp_path / ("x" * 300))


@pytest.mark.parametrize(("width", "height"), [(10_001, 10_000), (12_000, 15_000), (50_000, 60_000)])
def test_decompression_bomb_is_refused_by_its_header(width: int, height: int) -> None:
    with warnings.catch_warnings(record=True) as leaked:
        warnings.simplefilter("always")
        message = refused(io.BytesIO(png_header(width, height)))
    assert "is too large" in message
    assert "under 100 megapixels" in message
    assert not leaked


def test_between_pillows_limit_and_ours_nothing_is_warned_of() -> None:
    """96 megapixels: the header passes, the pixels that are not there are the error."""
    assert "damaged or incomplete" in refused(io.BytesIO(png_header(12_000, 8_000)))


def test_floating_point_pixels_are_refused() -> None:
    message = refused(io.BytesIO(encode(Image.fromarray(np.full((8, 8), 0.5, np.float32)), "TIFF")))
    assert "mode F" in message
    assert "JPEG or PNG" in message


def test_file_objects_are_named_where_they_have_a_name(tmp_path: Path) -> None:
    assert refused(io.BytesIO(b"")).startswith("the portrait is empty")
    path = tmp_path / "x.png"
    path.write_bytes(b"nothing")
    with path.open("rb") as file:
        assert refused(file).startswith(str(path))


def test_probe_reads_the_header_alone(pixels: U8, tmp_path: Path) -> None:
    assert probe_picture(io.BytesIO(encode(Image.fromarray(pixels), "PNG"))) == (200, 151)
    assert probe_picture(io.BytesIO(png_header(4_000, 3_000))) == (4_000, 3_000)
    with pytest.raises(PortraitError, match="too large"):
        probe_picture(io.BytesIO(png_header(50_000, 60_000)))
    with pytest.raises(PortraitError, match="not a picture"):
        probe_picture(io.BytesIO(b"some text, but no picture"))
    with pytest.raises(PortraitError, match="does not exist"):
        probe_picture(tmp_path / "gone.png")
