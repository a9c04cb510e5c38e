"""Stage 10, Paste-back: the generator's square set into the portrait."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from ..packs.section import Section
from ..values import F32, U8, Crop, Portrait

# The mask is worked out at this many points across the seam at least, or a narrow turned seam would show steps.
_POINTS_PER_SEAM = 4

# A larger image is first shrunk (antialiased) to so many pixels an output pixel; the bilinear step does the rest.
# At 1 fine lines would be blurred twice, at 2 they would shimmer.
_DENSITY = 1.5


@dataclass(frozen=True)
class SeamSpec:
    """The feathered mask, in pixels of a crop of `size`: one from `start` to `stop`, zero at the crop's edge."""

    size: int
    start: int
    stop: int

    @classmethod
    def read(cls, section: Section) -> SeamSpec:
        """Raises PackError: a field is missing or of the wrong kind."""
        inner = section.integers("inner")
        if len(inner) != 2:
            raise section.fail("inner", "two whole numbers: start and stop")
        return cls(section.integer("size"), *inner)

    def ramp(self, position: NDArray[np.float64]) -> NDArray[np.float64]:
        """Mask along one axis at positions 0..1 across the crop: smooth steps, zero outside."""
        pixels = position * self.size
        rise = np.clip(np.minimum(pixels / self.start, (self.size - pixels) / (self.size - self.stop)), 0, 1)
        return rise * rise * (3 - 2 * rise)


class Compositor:
    """Sets images into one portrait; mask and geometry are worked out once.

    Each output pixel depends on the portrait and on this frame's image alone, so a still image gives a still
    seam. Outside of the crop the portrait's pixels are returned exactly.

    Args:
        portrait: picture and crop.
        size: side of the images to come, pixels.
        seam: the mask.
        frame: "portrait" for the whole picture, "crop" for the images as they are.
    """

    def __init__(self, portrait: Portrait, size: int, seam: SeamSpec, frame: str = "portrait") -> None:
        self._frame = frame
        self._size = size
        self._picture = portrait.picture
        height, width = portrait.picture.shape[:2]
        self.output_size: tuple[int, int] = (size, size) if frame == "crop" else (width, height)
        """Width and height of the composed frames."""
        matrix = portrait.crop.matrix
        half = np.abs(matrix[:, :2]).sum(axis=1)
        left, top = np.clip(np.floor(matrix[:, 2] - half).astype(int), 0, (width - 1, height - 1))
        right, bottom = np.clip(np.ceil(matrix[:, 2] + half).astype(int), (left + 1, top + 1), (width, height))
        self._region = (slice(top, bottom), slice(left, right))
        self._region_size = (int(right - left), int(bottom - top))

        side = 2 * float(np.hypot(*matrix[:, 0]))
        self._shrunk = min(size, math.ceil(side * _DENSITY))
        inverse = _inverse(Crop(matrix - np.array([[0, 0, left], [0, 0, top]])))
        self._mask = _mask(inverse, self._region_size, seam, side)
        # What the portrait gives to the sum, a plane a colour, and the half that turns truncation into rounding.
        under = self._picture[self._region].transpose(2, 0, 1).astype(np.float32)
        self._under = under * (1 - self._mask) + np.float32(0.5)
        # Pixels of the region -> pixels of the shrunken image (crop units are -1..1 across it).
        affine = inverse * self._shrunk / 2
        affine[:, 2] += self._shrunk / 2
        self._affine = tuple(float(v) for v in affine.reshape(-1))

    def compose(self, image: U8) -> U8:
        """One frame.

        Args:
            image: [S, S, 3] uint8 RGB.

        Returns:
            [H, W, 3] uint8 RGB of `output_size`; `image` itself where the frame is the crop.
        """
        if self._frame == "crop":
            return image
        square = Image.fromarray(image)
        if self._shrunk < self._size:
            square = square.resize((self._shrunk, self._shrunk), Image.Resampling.HAMMING)
        frame = self._picture.copy()
        region = frame[self._region]
        for channel, plane in enumerate(square.split()):
            # As floats: Pillow truncates what it interpolates of bytes, which would darken the crop by half a level.
            moved = plane.convert("F").transform(
                self._region_size, Image.Transform.AFFINE, self._affine, Image.Resampling.BILINEAR
            )
            region[..., channel] = np.asarray(moved) * self._mask + self._under[channel]
        return frame


def _inverse(crop: Crop) -> NDArray[np.float64]:
    """[2, 3]: picture pixels to crop units."""
    (a, b, x), (c, d, y) = crop.matrix
    linear = np.array([[d, -b], [-c, a]]) / (a * d - b * c)
    return np.column_stack([linear, -linear @ [x, y]])


def _mask(inverse: NDArray[np.float64], size: tuple[int, int], seam: SeamSpec, side: float) -> F32:
    """The mask in the region's pixels, [h, w] float32: means over a few points a pixel where the seam is narrow."""
    width, height = size
    seam_pixels = min(seam.start, seam.size - seam.stop) / seam.size * side
    points = max(1, math.ceil(_POINTS_PER_SEAM / seam_pixels))
    total = np.zeros((height, width))
    for offset_y in (np.arange(points) + 0.5) / points:
        for offset_x in (np.arange(points) + 0.5) / points:
            u, v = _positions(inverse, size, offset_x, offset_y)
            total += seam.ramp(u) * seam.ramp(v)
    u, v = _positions(inverse, size, 0.5, 0.5)
    # The image is sampled at the pixel's centre; where that lies outside there is nothing to show.
    inside = (u >= 0) & (u < 1) & (v >= 0) & (v < 1)
    return np.where(inside, total / points**2, 0).astype(np.float32)


def _positions(
    inverse: NDArray[np.float64], size: tuple[int, int], offset_x: float, offset_y: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Place of a point of every pixel across the crop, 0..1 in x and y."""
    x = np.arange(size[0]) + offset_x
    y = (np.arange(size[1]) + offset_y)[:, None]
    u, v = (row[0] * x + row[1] * y + row[2] for row in inverse)
    return (u + 1) / 2, (v + 1) / 2
