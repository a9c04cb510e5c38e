"""Where faces may be: the detector on tiles of an image pyramid.

The detector answers for faces of about 20 to 110 pixels. So the picture is shown to it shrunk until the
smallest usable face has `face_side` pixels, then again and again at half the size, down to the whole picture
on one small tile. Each level is cut into overlapping tiles, which bounds memory and keeps to the caches.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from ..runtime.session import Model
from ..values import F32, U8
from .spec import DetectorSpec


@dataclass(frozen=True)
class Candidate:
    """A place that looks like a face: square in picture pixels, and the logit.

    `center`: [2] float64; `side`: pixels; `angle`: radians, of the line from the right eye to the left.
    """

    center: NDArray[np.float64]
    side: float
    angle: float
    score: float


def detect(picture: U8, model: Model, spec: DetectorSpec, scales: list[float]) -> list[Candidate]:
    """Search the picture at these scales (model pixels for a picture pixel).

    Args:
        picture: [H, W, 3] uint8.
        model: role `image` f32 [1, h, w, 3] -> `boxes` [1, anchors, 4 + 2 points], `scores` [1, anchors, 1].

    Returns:
        Candidates, best first; no two overlap by more than the spec says.
    """
    image = Image.fromarray(picture)
    found: list[Candidate] = []
    for scale in sorted(scales, reverse=True):
        size = (max(1, round(picture.shape[1] * scale)), max(1, round(picture.shape[0] * scale)))
        # From the level before, which is at most twice as large: each pixel is read once for the first level only.
        image = image.resize(size, Image.Resampling.BILINEAR, reducing_gap=1.0)
        factor = np.array(picture.shape[1::-1]) / size
        for left, top, tile in _tiles(np.asarray(image), spec):
            found += _ask(tile, model, spec, np.array([left, top]), factor)
    return suppress(found, spec.overlap)


def usual_scales(width: int, height: int, spec: DetectorSpec, least_side: int) -> list[float]:
    """Scales at which every face of `least_side` picture pixels or more is found, each half of the last."""
    scales = [spec.face_side / least_side]
    while max(width, height) * scales[-1] > spec.least_search_side:
        scales.append(scales[-1] / 2)
    return scales


def finer_scales(width: int, height: int, spec: DetectorSpec, least_side: int) -> list[float]:
    """Scales at which still smaller faces are found, as far as the spec's count of pixels goes."""
    scales = []
    for doublings in (1, 2):
        scale = spec.face_side / least_side * 2**doublings
        if width * height * scale * scale <= spec.finest_pixels:
            scales.append(scale)
    return scales


def suppress(candidates: list[Candidate], overlap: float) -> list[Candidate]:
    """Non-maximum suppression: of boxes that share more than `overlap` of their union the best stays."""
    kept: list[Candidate] = []
    for candidate in sorted(candidates, key=lambda c: -c.score):
        if all(shared(candidate, other) <= overlap for other in kept):
            kept.append(candidate)
    return kept


def shared(a: Candidate, b: Candidate) -> float:
    """Intersection over union of two candidates' upright squares."""
    sides = (a.side + b.side) / 2 - np.abs(a.center - b.center)
    sides = np.clip(sides, 0, min(a.side, b.side))
    both = float(sides[0] * sides[1])
    return both / (a.side**2 + b.side**2 - both)


def _tiles(image: U8, spec: DetectorSpec) -> Iterator[tuple[int, int, U8]]:
    """Left, top and pixels of every tile; black beyond the picture, as the model was trained."""
    step, cell = spec.window - spec.window_overlap, max(spec.strides)
    height, width = image.shape[:2]
    for top in range(0, max(1, height - spec.window_overlap), step):
        for left in range(0, max(1, width - spec.window_overlap), step):
            part = image[top : top + spec.window, left : left + spec.window]
            # At least a cell of margin, so that a face at the border has something beyond it.
            sides = [min(spec.window, math.ceil(side / cell + 1) * cell) for side in part.shape[:2]]
            tile = np.zeros((*sides, 3), np.uint8)
            tile[: part.shape[0], : part.shape[1]] = part
            yield left, top, tile


def _ask(
    tile: U8, model: Model, spec: DetectorSpec, corner: NDArray[np.int_], factor: NDArray[np.float64]
) -> list[Candidate]:
    pixels = tile[None].astype(np.float32) * np.float32((spec.high - spec.low) / 255) + np.float32(spec.low)
    answer = model.run({"image": pixels})
    scores = np.asarray(answer["scores"], np.float32)[0, :, 0]
    chosen = np.flatnonzero(scores >= spec.threshold)
    if not len(chosen):
        return []
    anchors = anchor_centers(tile.shape[0], tile.shape[1], spec)[chosen].astype(np.float64)
    rows = np.asarray(answer["boxes"], np.float64)[0, chosen]
    points = rows[:, 4:].reshape(len(rows), -1, 2)
    eyes = (points[:, spec.eyes[1]] - points[:, spec.eyes[0]]) * factor
    centers = (rows[:, :2] + anchors + corner) * factor
    sides = rows[:, 2:4].max(axis=1) * factor.max()
    angles = np.arctan2(eyes[:, 1], eyes[:, 0])
    return [
        Candidate(centers[i], float(sides[i]), float(angles[i]), float(scores[chosen[i]]))
        for i in range(len(chosen))
        if sides[i] > 0
    ]


def anchor_centers(height: int, width: int, spec: DetectorSpec) -> F32:
    """Centres of the anchors of an input of these sides, [anchors, 2] float32 x, y in pixels, in the model's order."""
    parts = []
    for stride, count in zip(spec.strides, spec.anchors, strict=True):
        y, x = np.mgrid[: height // stride, : width // stride].astype(np.float32)
        centers = (np.stack([x, y], axis=-1).reshape(-1, 2) + np.float32(0.5)) * np.float32(stride)
        parts.append(np.repeat(centers, count, axis=0))
    return np.concatenate(parts)
