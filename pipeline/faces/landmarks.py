"""478 landmarks of one face, asked for again from their own square until they rest."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..runtime.session import Model
from ..values import U8, Crop
from .sampling import sample_square, square
from .spec import LandmarksSpec

F64 = NDArray[np.float64]


@dataclass(frozen=True)
class Landmarks:
    """`points`: [points, 3] float64, x, y in picture pixels ((0, 0) = the picture's top left corner), z in the
    same unit, smaller = nearer. `score`: the model's logit that this is a face."""

    points: F64
    score: float


def find_landmarks(picture: U8, model: Model, spec: LandmarksSpec, start: Crop) -> Landmarks | None:
    """Find the landmarks of the face in and around a square.

    Args:
        picture: [H, W, 3] uint8.
        model: role `image` f32 [1, side, side, 3] -> `points` [1, 1, 1, 3 points] in input pixels, `score`.
        start: the square to begin with; the next ones follow from the points found.

    Returns:
        The points of the last pass, or None as soon as the model sees no face.
    """
    crop, last = start, None
    for _ in range(spec.passes):
        if not _centered_in(crop, picture):
            return None
        found = _ask(picture, model, spec, crop)
        if found.score < spec.threshold:
            return None
        side = 2 * float(np.hypot(*crop.matrix[:, 0]))
        if last is not None and np.abs(found.points - last.points).mean() < spec.settled * side:
            return found
        last = found
        crop = square_of(found.points, spec)
    return last


def square_of(points: F64, spec: LandmarksSpec) -> Crop:
    """The model's input square for a face with these points: around them all, level with the eyes."""
    right, left = points[spec.eye_corners[0], :2], points[spec.eye_corners[1], :2]
    across = (left - right) / np.hypot(*(left - right))
    axes = np.array([across, [-across[1], across[0]]])
    level = points[:, :2] @ axes.T
    low, high = level.min(axis=0), level.max(axis=0)
    center: F64 = (low + high) / 2 @ axes
    return square(center, float((high - low).max()) * spec.margin, float(np.arctan2(across[1], across[0])))


def _centered_in(crop: Crop, picture: U8) -> bool:
    """Whether the square's centre lies in the picture; without that there is no face to speak of."""
    x, y = crop.matrix[:, 2]
    return bool(0 <= x < picture.shape[1] and 0 <= y < picture.shape[0])


def _ask(picture: U8, model: Model, spec: LandmarksSpec, crop: Crop) -> Landmarks:
    pixels = sample_square(picture, crop, spec.side)[None].astype(np.float32)
    pixels = pixels * np.float32((spec.high - spec.low) / 255) + np.float32(spec.low)
    answer = model.run({"image": pixels})
    raw = np.asarray(answer["points"], np.float64).reshape(spec.points, 3)
    units = raw[:, :2] * (2 / spec.side) - 1
    depth = raw[:, 2:] * (2 / spec.side) * np.hypot(*crop.matrix[:, 0])
    points = np.hstack([units @ crop.matrix[:, :2].T + crop.matrix[:, 2], depth])
    return Landmarks(points, float(np.asarray(answer["score"]).reshape(-1)[0]))
