"""The square that the networks see, from the landmarks (LivePortrait's crop)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..packs.section import Section
from ..values import F32, Crop


@dataclass(frozen=True)
class CropSpec:
    """How a pack wants its crop.

    `factor`: the crop's side over that of the square around the outline. `shift`: of the centre along the line
    from the eyes to the mouth, in sides of the crop (negative = up). `size`: pixels of a side.
    `outline`, `right_eye`, `left_eye`, `mouth_corners`: landmark numbers.
    """

    factor: float
    shift: float
    size: int
    outline: tuple[int, ...]
    right_eye: tuple[int, ...]
    left_eye: tuple[int, ...]
    mouth_corners: tuple[int, ...]

    @classmethod
    def read(cls, section: Section) -> CropSpec:
        """Raises PackError: a field is missing or of the wrong kind."""
        return section.record(cls)


def face_crop(points: NDArray[np.float64], spec: CropSpec) -> Crop:
    """The crop of the face with these landmarks.

    Its axes are uy = unit(mouth - eyes), where eyes is the mean of the two eyes' centres and mouth that of the
    corners, and ux, a quarter turn from it (level with the eyes of a face that looks ahead). The outline's
    bounding box in these axes, made square, times `factor`, then moved by `shift` along uy.

    Args:
        points: [478, 2 or 3] in picture pixels.
    """
    xy = points[:, :2]
    eyes = (xy[list(spec.right_eye)].mean(axis=0) + xy[list(spec.left_eye)].mean(axis=0)) / 2
    down = xy[list(spec.mouth_corners)].mean(axis=0) - eyes
    down = down / np.hypot(*down)
    axes = np.array([[down[1], -down[0]], down])
    outline = xy[list(spec.outline)] @ axes.T
    low, high = outline.min(axis=0), outline.max(axis=0)
    side = float((high - low).max()) * spec.factor
    center = (low + high) / 2 + [0, spec.shift * side]
    return Crop(np.column_stack([axes.T * (side / 2), center @ axes]))


def in_crop_units(points: NDArray[np.float64], crop: Crop) -> F32:
    """Points [n, 3] of picture pixels as crop units [n, 3] float32; z by the crop's scale."""
    linear = crop.matrix[:, :2]
    # The inverse of a rotation times a scale, written out: no LAPACK in what must be the same everywhere.
    scale = linear[0, 0] ** 2 + linear[1, 0] ** 2
    xy = (points[:, :2] - crop.matrix[:, 2]) @ linear / scale
    return np.column_stack([xy, points[:, 2] / np.sqrt(scale)]).astype(np.float32)
