"""Sampling a square of a picture, wherever it lies and however it is turned."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from ..values import U8, Crop

# Pixels that the bicubic kernel reaches beyond the square, and one for rounding.
_REACH = 3


def square(center: NDArray[np.float64], side: float, angle: float) -> Crop:
    """The square of `side` pixels around `center` (x, y), turned by `angle` radians (clockwise as seen)."""
    c, s = math.cos(angle) * side / 2, math.sin(angle) * side / 2
    return Crop(np.array([[c, -s, center[0]], [s, c, center[1]]], np.float64))


def sample_square(picture: U8, crop: Crop, size: int) -> U8:
    """Sample the square to size x size pixels.

    Bicubic; when the square is larger than `size` the picture is first shrunk with a filter that is as
    wide as the shrinking asks for (antialiasing). Beyond the picture its edge pixels are repeated.

    Args:
        picture: [H, W, 3] uint8.
        crop: the square's place; at least one pixel of its surroundings lies in the picture.

    Returns:
        [size, size, 3] uint8.
    """
    height, width = picture.shape[:2]
    matrix = crop.matrix
    shrink = max(1.0, 2 * float(np.hypot(*matrix[:, 0])) / size)
    half = np.abs(matrix[:, :2]).sum(axis=1)
    low = np.floor(matrix[:, 2] - half - _REACH * shrink).astype(int)
    high = np.ceil(matrix[:, 2] + half + _REACH * shrink).astype(int)
    limit = np.array([width, height])
    left, top = np.clip(low, 0, limit - 1)
    right, bottom = np.clip(high, (left + 1, top + 1), limit)
    region = Image.fromarray(picture[top:bottom, left:right])
    factor = np.ones(2)
    if shrink > 1:
        small = (math.ceil(region.width / shrink), math.ceil(region.height / shrink))
        factor = np.array(small) / region.size
        region = region.resize(small, Image.Resampling.BICUBIC)
    before = np.maximum(0, np.ceil(((left, top) - low) * factor)).astype(int)
    after = np.maximum(0, np.ceil((high - (right, bottom)) * factor)).astype(int)
    if before.any() or after.any():
        pads = ((before[1], after[1]), (before[0], after[0]), (0, 0))
        region = Image.fromarray(np.pad(np.asarray(region), pads, mode="edge"))
    linear = matrix[:, :2] * factor[:, None]
    offset = (matrix[:, 2] - (left, top)) * factor + before - linear.sum(axis=1)
    linear = linear * 2 / size
    affine = (*linear[0], offset[0], *linear[1], offset[1])
    sampled = np.empty((size, size, 3), np.uint8)
    for channel, plane in enumerate(region.split()):
        # As floats: Pillow truncates what it interpolates of bytes, which would darken the picture by half a level.
        moved = plane.convert("F").transform((size, size), Image.Transform.AFFINE, affine, Image.Resampling.BICUBIC)
        sampled[..., channel] = np.clip(np.asarray(moved) + np.float32(0.5), 0, 255)
    return sampled
