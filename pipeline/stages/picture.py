"""Opening a picture file of any usual format as upright 8-bit RGB, with Pillow."""

from __future__ import annotations

import io
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import numpy as np
from PIL import Image, ImageCms, UnidentifiedImageError

from ..errors import PortraitError
from ..values import U8

# Decoded, a picture takes 3 to 4 bytes a pixel several times over; no camera portrait is larger.
MOST_PIXELS = 100_000_000

# Brands of ISO media files that hold HEVC pictures, which Pillow cannot decode.
_HEIF_BRANDS = {b"heic", b"heix", b"heim", b"heis", b"hevc", b"hevx", b"hevm", b"hevs", b"mif1", b"msf1"}

_EXIF_ORIENTATION = 0x0112
_TURNS = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}

_SHRINK = f"shrink it to under {MOST_PIXELS / 1e6:.0f} megapixels"
_CURE = "save it as JPEG or PNG and use that"


def open_picture(source: Path | BinaryIO, background: tuple[int, int, int]) -> U8:
    """Decode a picture: its first frame, upright (EXIF orientation), in sRGB.

    Transparent parts show `background` (R, G, B of 0..255), before anything else is done with the pixels.
    16-bit samples keep their upper 8 bits. An embedded colour profile is applied.

    Args:
        source: a path, or a file of bytes open for reading and seekable.

    Returns:
        [H, W, 3] uint8 RGB.

    Raises:
        PortraitError: no such file, not a picture, of a format that Pillow cannot read (HEIC), damaged, or
            more than MOST_PIXELS (judged by the header, before decoding).
    """
    name = name_of(source)
    if isinstance(source, Path):
        return _decode(_read(source), name, background)
    return _decode(source, name, background)


def probe_picture(source: Path | BinaryIO) -> tuple[int, int]:
    """Width and height by the header, a quick look before work is queued; raises PortraitError as `open_picture`
    does, but for damage that only decoding shows."""
    name = name_of(source)
    with _opened(_read(source) if isinstance(source, Path) else source, name) as image:
        return image.width, image.height


def name_of(source: Path | BinaryIO) -> str:
    """What messages call the picture."""
    if isinstance(source, Path):
        return str(source)
    name = getattr(source, "name", None)
    return name if isinstance(name, str) else "the portrait"


def _read(path: Path) -> BinaryIO:
    if os.path.isdir(path):  # no error of a name that is too long
        raise PortraitError(f"{path} is a folder; name the picture file in it")
    try:
        return io.BytesIO(path.read_bytes())
    except FileNotFoundError:
        raise PortraitError(f"{path} does not exist; check the path of the portrait") from None
    except OSError as error:
        raise PortraitError(f"{path} cannot be read ({error.strerror}); check the file's permissions") from error


@contextmanager
def _opened(file: BinaryIO, name: str) -> Iterator[Image.Image]:
    """The picture with its header read, of an acceptable size."""
    start = file.read(64)
    file.seek(0)
    if not start:
        raise PortraitError(f"{name} is empty (0 bytes); choose another picture")
    with warnings.catch_warnings():
        # Our own limit below says more than Pillow's warnings; damaged metadata is not worth one either.
        warnings.simplefilter("ignore")
        try:
            image = Image.open(file)
        except UnidentifiedImageError:
            raise PortraitError(_unknown(start, name)) from None
        except Image.DecompressionBombError:
            raise PortraitError(f"{name} is too large; {_SHRINK}") from None
        except Exception as error:  # each format's reader has failures of its own
            raise PortraitError(f"{name} is damaged ({_reason(error)}); {_CURE}") from error
        with image:
            if image.width * image.height > MOST_PIXELS:
                raise PortraitError(f"{name} is too large ({image.width} x {image.height} pixels); {_SHRINK}")
            yield image


def _decode(file: BinaryIO, name: str, background: tuple[int, int, int]) -> U8:
    with _opened(file, name) as image:
        try:
            image.load()
            return np.asarray(_turn(_rgb(image, background), image))
        except Exception as error:
            raise PortraitError(f"{name} is damaged or incomplete ({_reason(error)}); {_CURE}") from error


def _unknown(start: bytes, name: str) -> str:
    if start[4:8] == b"ftyp" and start[8:12] in _HEIF_BRANDS:
        return f"{name} is a HEIC picture, which talkreel cannot read; {_CURE}"
    return f"{name} is not a picture that can be read (JPEG, PNG, WebP, AVIF, TIFF, GIF and BMP can); {_CURE}"


def _reason(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def _rgb(image: Image.Image, background: tuple[int, int, int]) -> Image.Image:
    if image.mode.startswith("I") or image.mode == "F":
        return _eight_bits(image).convert("RGB")
    if not image.has_transparency_data:
        return _to_srgb(image.convert("RGB") if image.mode == "P" else image, image)
    layered = image.convert("RGBA")
    picture = Image.new("RGB", image.size, background)
    picture.paste(_to_srgb(layered.convert("RGB"), image), mask=layered.getchannel("A"))
    return picture


def _eight_bits(image: Image.Image) -> Image.Image:
    """Grey of 16 bits (or of 32 that hold 16) as 8 bits."""
    values = np.asarray(image)
    if image.mode == "F" or values.min() < 0 or values.max() > 65535:
        raise ValueError(f"pixels of mode {image.mode} with values {values.min()} to {values.max()}")
    return Image.fromarray(((values.astype(np.uint32) + 128) // 257).astype(np.uint8))


def _to_srgb(pixels: Image.Image, image: Image.Image) -> Image.Image:
    """The pixels in sRGB, by the profile embedded in `image` where there is one that fits."""
    profile = image.info.get("icc_profile")
    if profile:
        try:
            source = ImageCms.ImageCmsProfile(io.BytesIO(profile))
            if "sRGB" not in ImageCms.getProfileDescription(source):
                converted = ImageCms.profileToProfile(
                    pixels,
                    source,
                    ImageCms.createProfile("sRGB"),
                    ImageCms.Intent.RELATIVE_COLORIMETRIC,
                    outputMode="RGB",
                    flags=ImageCms.Flags.BLACKPOINTCOMPENSATION,
                )
                if converted is not None:
                    return converted
        except (ImageCms.PyCMSError, OSError, ValueError):
            pass  # a damaged profile, or one of another colour space: the pixels are all there is to go by
    return pixels.convert("RGB")


def _turn(picture: Image.Image, image: Image.Image) -> Image.Image:
    try:
        turn = _TURNS.get(image.getexif().get(_EXIF_ORIENTATION, 1))
    except Exception:  # damaged EXIF data raise whatever their parser stumbles on; the pixels are fine
        return picture
    return picture if turn is None else picture.transpose(turn)
