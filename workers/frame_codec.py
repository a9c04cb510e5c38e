"""Pictures to bytes and back, bit for bit.

MagicYUV, each picture by itself. One that resembles an earlier one (frames of a chunk do) is stored as the
difference, modulo 256, within the box where they differ, and as nothing where they are the same. Chosen for its
time, which every frame pays twice: FFV1 is a third smaller and takes five times as long, half of what rendering
the frame takes. Measured against those, PNG, WebP, zlib, H.264 and VP9: tests/benchmarks/frame_codec.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import av
import numpy as np

from pipeline.values import U8

Box = tuple[int, int, int, int]
"""Left, top, right, bottom in pixels."""

CODEC = "magicyuv"

# Each value is told from its left neighbour: a tenth smaller than by gradient, quicker to read than by median.
OPTIONS = {"pred": "left"}

# Planes of green, blue, red, 8 bits.
PIXELS = "gbrp"

# No difference lies in the middle, so that small ones of either sign are near to one another.
MIDDLE = np.uint8(128)

LONGEST_SIDE = 16384


@dataclass(frozen=True)
class Stored:
    """A picture as stored: `data` is the box, packed, empty for an empty box."""

    data: bytes
    box: Box
    difference: bool


def is_picture(array: np.ndarray) -> bool:
    """Whether this is [H, W, 3] uint8, of sides that can be stored."""
    return (
        array.dtype == np.uint8
        and array.ndim == 3
        and array.shape[2] == 3
        and min(array.shape[:2]) >= 1
        and max(array.shape[:2]) <= LONGEST_SIDE
    )


def store(picture: U8, earlier: U8 | None = None) -> Stored:
    """[H, W, 3] uint8 to bytes; `earlier` is a picture of the same shape that the reader will have."""
    if earlier is None or not _resembles(picture, earlier):
        return Stored(_packed(picture), (0, 0, picture.shape[1], picture.shape[0]), difference=False)
    difference = picture - earlier
    left, top, right, bottom = box = _box(difference)
    data = _packed(difference[top:bottom, left:right] + MIDDLE) if right > left else b""
    return Stored(data, box, difference=True)


def restore(stored: Stored, shape: tuple[int, ...], earlier: U8 | None) -> U8:
    """The picture again. Raises ValueError: not what `store` made."""
    left, top, right, bottom = stored.box
    if not stored.difference:
        return _unpacked(stored.data, shape)
    if earlier is None or earlier.shape != shape:
        raise ValueError("the picture that this one differs from is not there")
    picture = earlier.copy()
    if right > left:
        picture[top:bottom, left:right] += _unpacked(stored.data, (bottom - top, right - left, 3)) - MIDDLE
    return picture


def _resembles(picture: U8, earlier: U8) -> bool:
    """Whether the difference is likely to be smaller than the picture: less between the two than between
    neighbouring pixels, in the green of every fourth row."""
    green, before = picture[::4, :, 1], earlier[::4, :, 1]
    between = np.abs((green - before).view(np.int8).astype(np.int16)).sum()
    along = np.abs((green[:, 1:] - green[:, :-1]).view(np.int8).astype(np.int16)).sum()
    return bool(between <= along)


def _box(difference: U8) -> Box:
    """Where the difference is not zero; all zeros where it is nowhere."""
    rows = np.flatnonzero(np.any(difference, axis=(1, 2)))
    columns = np.flatnonzero(np.any(difference[rows[0] : rows[-1] + 1], axis=(0, 2))) if len(rows) else rows
    if not len(rows):
        return 0, 0, 0, 0
    return int(columns[0]), int(rows[0]), int(columns[-1]) + 1, int(rows[-1]) + 1


def _packed(picture: U8) -> bytes:
    context: Any = av.CodecContext.create(CODEC, "w")
    context.height, context.width = picture.shape[:2]
    context.pix_fmt, context.time_base, context.thread_count = PIXELS, Fraction(1), 1
    context.options = OPTIONS
    frame = av.VideoFrame.from_ndarray(np.ascontiguousarray(picture), "rgb24").reformat(format=PIXELS)
    return b"".join(bytes(packet) for packet in [*context.encode(frame), *context.encode(None)])


def _unpacked(data: bytes, shape: tuple[int, ...]) -> U8:
    context: Any = av.CodecContext.create(CODEC, "r")
    context.height, context.width = shape[:2]
    context.pix_fmt, context.thread_count = PIXELS, 1
    try:
        frames = [*context.decode(av.Packet(data)), *context.decode(None)]
    except av.FFmpegError as error:
        raise ValueError(f"a picture cannot be read: {error}") from None
    if len(frames) != 1:
        raise ValueError(f"{len(frames)} pictures where one belongs")
    picture: U8 = frames[0].to_ndarray(format="rgb24")
    if picture.shape != shape:
        raise ValueError(f"a picture of {picture.shape} where {shape} belongs")
    return picture
