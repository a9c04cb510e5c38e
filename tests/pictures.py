"""Picture files of many formats, made while the tests run."""

from __future__ import annotations

import io
import struct
import zlib
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from PIL import Image

U8 = NDArray[np.uint8]

P3_TO_SRGB = np.array([[1.2249, -0.2247, 0.0], [-0.0420, 1.0419, 0.0], [-0.0197, -0.0786, 1.0979]])
"""Linear Display P3 to linear sRGB (both have the white D65)."""


def encode(image: Image.Image, kind: str, **options: object) -> bytes:
    file = io.BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


def grey(pixels: U8) -> U8:
    """The grey picture that Pillow makes of it, [H, W, 3]."""
    return np.asarray(Image.fromarray(pixels).convert("L").convert("RGB"))


def png(pixels: NDArray[np.uint8 | np.uint16], color: int, extra: bytes = b"") -> bytes:
    """A PNG of this colour type (0 grey, 2 RGB, 4 grey + alpha, 6 RGBA), also those that Pillow cannot write."""
    height, width = pixels.shape[:2]
    big_endian = pixels.astype(pixels.dtype.newbyteorder(">")).reshape(height, -1)
    rows = b"".join(b"\0" + row.tobytes() for row in big_endian)
    header = struct.pack(">IIBBBBB", width, height, 8 * pixels.itemsize, color, 0, 0, 0)
    parts = _chunk(b"IHDR", header) + extra + _chunk(b"IDAT", zlib.compress(rows, 1)) + _chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + parts


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png_header(width: int, height: int) -> bytes:
    """The beginning of a PNG that claims to be so large, with hardly any pixels."""
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + _chunk(b"IHDR", header)
        + _chunk(b"IDAT", zlib.compress(b"\0" * 100))
        + _chunk(b"IEND", b"")
    )


def sixteen(pixels: U8) -> NDArray[np.uint16]:
    return pixels.astype(np.uint16) * 257


def with_alpha(pixels: U8, alpha: U8 | int = 255) -> U8:
    return np.dstack([pixels, np.broadcast_to(np.uint8(alpha) if isinstance(alpha, int) else alpha, pixels.shape[:2])])


def _animated(kind: str, pixels: U8) -> bytes:
    first, second = Image.fromarray(pixels), Image.fromarray(255 - pixels)
    return encode(first, kind, save_all=True, append_images=[second], duration=100)


def _palette_with_alpha(pixels: U8) -> bytes:
    """Palette and a transparent entry that no pixel uses."""
    image = Image.fromarray(pixels).quantize(255)
    return encode(image, "PNG", transparency=255)


FORMATS: dict[str, tuple[Callable[[U8], bytes], bool, float]] = {
    "JPEG": (lambda p: encode(Image.fromarray(p), "JPEG", quality=95), False, 3),
    "progressive JPEG": (lambda p: encode(Image.fromarray(p), "JPEG", quality=95, progressive=True), False, 3),
    "grey JPEG": (lambda p: encode(Image.fromarray(p).convert("L"), "JPEG", quality=95), True, 3),
    "CMYK JPEG": (lambda p: encode(Image.fromarray(p).convert("CMYK"), "JPEG", quality=95), False, 4),
    "CMYK TIFF": (lambda p: encode(Image.fromarray(p).convert("CMYK"), "TIFF"), False, 2),
    "PNG": (lambda p: encode(Image.fromarray(p), "PNG"), False, 0),
    "16-bit grey PNG": (lambda p: png(sixteen(grey(p)[..., 0]), 0), True, 0),
    "16-bit grey and alpha PNG": (lambda p: png(sixteen(with_alpha(grey(p))[..., 2:]), 4), True, 0),
    "16-bit RGB PNG": (lambda p: png(sixteen(p), 2), False, 0),
    "16-bit RGBA PNG": (lambda p: png(sixteen(with_alpha(p)), 6), False, 0),
    "16-bit grey TIFF": (lambda p: encode(Image.fromarray(sixteen(grey(p)[..., 0])), "TIFF"), True, 0),
    "grey and alpha PNG": (lambda p: png(with_alpha(grey(p))[..., 2:], 4), True, 0),
    "palette PNG": (lambda p: encode(Image.fromarray(p).quantize(256), "PNG"), False, 8),
    "palette PNG with transparency": (_palette_with_alpha, False, 8),
    "WebP": (lambda p: encode(Image.fromarray(p), "WEBP", quality=95), False, 4),
    "lossless WebP with alpha": (lambda p: encode(Image.fromarray(with_alpha(p)), "WEBP", lossless=True), False, 0),
    "AVIF": (lambda p: encode(Image.fromarray(p), "AVIF", quality=95), False, 4),
    "animated GIF": (lambda p: _animated("GIF", p), False, 8),
    "animated PNG": (lambda p: _animated("PNG", p), False, 0),
    "animated WebP": (lambda p: _animated("WEBP", p), False, 6),
    "animated AVIF": (lambda p: _animated("AVIF", p), False, 6),
    "BMP": (lambda p: encode(Image.fromarray(p), "BMP"), False, 0),
    "JPEG 2000": (lambda p: encode(Image.fromarray(p), "JPEG2000"), False, 1),
}
"""By name: makes the file of [H, W, 3] pixels; whether colour is lost; greatest mean difference expected."""


def display_p3_profile() -> bytes:
    """A minimal ICC profile of Display P3 with a gamma of 2.2 (matrix and curve, version 2)."""

    def fixed(*values: float) -> bytes:
        return b"".join(struct.pack(">i", round(value * 65536)) for value in values)

    def xyz(*values: float) -> bytes:
        return b"XYZ \0\0\0\0" + fixed(*values)

    text = b"Display P3\0"
    description = b"desc\0\0\0\0" + struct.pack(">I", len(text)) + text + b"\0" * (4 + 4 + 2 + 1 + 67)
    curve = b"curv\0\0\0\0" + struct.pack(">IH", 1, round(2.2 * 256))
    tags = {
        b"desc": description,
        b"cprt": b"text\0\0\0\0none\0",
        b"wtpt": xyz(0.9642, 1.0, 0.8249),
        b"rXYZ": xyz(0.51512, 0.2412, -0.00105),
        b"gXYZ": xyz(0.29198, 0.69225, 0.04189),
        b"bXYZ": xyz(0.1571, 0.06657, 0.78407),
        b"rTRC": curve,
        b"gTRC": curve,
        b"bTRC": curve,
    }
    table, body = b"", b""
    start = 128 + 4 + 12 * len(tags)
    for name, data in tags.items():
        data += b"\0" * (-len(data) % 4)
        table += name + struct.pack(">II", start + len(body), len(data))
        body += data
    size = start + len(body)
    header = struct.pack(">I", size) + b"none" + struct.pack(">I", 0x02400000) + b"mntrRGB XYZ "
    header += struct.pack(">6H", 2024, 1, 1, 0, 0, 0) + b"acsp" + b"\0" * 28 + fixed(0.9642, 1.0, 0.8249)
    return header.ljust(128, b"\0") + struct.pack(">I", len(tags)) + table + body


def textured(width: int, height: int, seed: int = 0) -> U8:
    """Soft coloured patches with grain: much for a detector to wonder at, and no face."""
    rng = np.random.default_rng(seed)
    patches = Image.fromarray(rng.integers(0, 256, (height // 40 + 1, width // 40 + 1, 3), dtype=np.uint8))
    pixels = np.asarray(patches.resize((width, height), Image.Resampling.BICUBIC)).copy()
    grain = rng.integers(0, 40, (height, width, 1), dtype=np.uint8)
    return (pixels // 8 * 6 + grain).astype(np.uint8)


def paste_head(picture: U8, sample: U8, side: float, left: int, top: int) -> tuple[float, float, float, float]:
    """Paste the sample's head so that its face's box has this side.

    Returns:
        The box, in pixels of `picture`.
    """
    factor = side / SAMPLE_BOX_SIDE
    head = Image.fromarray(sample[:HEAD, HEAD_LEFT : HEAD_LEFT + HEAD])
    size = round(HEAD * factor)
    picture[top : top + size, left : left + size] = np.asarray(head.resize((size, size), Image.Resampling.LANCZOS))
    corner = np.array([left, top])
    box = (np.array(SAMPLE_BOX).reshape(2, 2) - (HEAD_LEFT, 0)) * size / HEAD + corner
    return tuple(float(v) for v in box.reshape(-1))


SAMPLE_BOX = (178, 85, 274, 181)
SAMPLE_BOX_SIDE = 95.5
HEAD, HEAD_LEFT = 230, 110
"""Where the sample's head lies: a square from the top, so many pixels."""


def turned(sample: U8, degrees: float) -> U8:
    """The sample as if its head were a cylinder, turned to the side; grey beside it."""
    center, radius, bottom = 226, 70, 230
    picture = np.full_like(sample, 180)
    for x in range(center - radius, center + radius):
        angle = np.arcsin((x + 0.5 - center) / radius) - np.radians(degrees)
        if abs(angle) < np.pi / 2:
            picture[:bottom, x] = sample[:bottom, int(center + radius * np.sin(angle))]
    return picture
