"""Stage 2, Portrait: the picture, the face in it, and the crop that the networks see."""

from __future__ import annotations

from pathlib import Path
from typing import BinaryIO

import numpy as np
from PIL import Image

from ..errors import Box, FaceTooSmallError, NoFaceError, PortraitError, SeveralFacesError
from ..faces.crop import CropSpec, face_crop, in_crop_units
from ..faces.finder import Face, FaceFinder
from ..faces.sampling import sample_square
from ..faces.spec import FaceSpec
from ..values import U8, Portrait
from .picture import name_of, open_picture

BACKGROUND = (128, 128, 128)
"""Shown behind transparent parts unless the user chooses another colour: mid-grey."""


def prepare_portrait(
    source: Path | BinaryIO,
    finder: FaceFinder,
    crop_spec: CropSpec,
    *,
    background: tuple[int, int, int] = BACKGROUND,
    face: int | None = None,
    max_side: int = 1280,
) -> Portrait:
    """Open the picture, find the face, cut the crop.

    Args:
        source: a path, or a file of bytes open for reading.
        finder: the face models.
        crop_spec: the pack's crop rule.
        background: R, G, B behind transparent parts.
        face: which of several faces, from left to right, 1 = the leftmost; None = there must be only one.
        max_side: longest side of `Portrait.picture`, pixels.

    Raises:
        PortraitError: the picture cannot be read, or the face is turned too far or cut off.
        NoFaceError, FaceTooSmallError, SeveralFacesError: see there.
    """
    stored = open_picture(source, background)
    name = name_of(source)
    chosen = choose_face(finder.find(stored), face, name, finder.spec.least_side)
    _check_view(chosen, name, finder.spec)
    crop = face_crop(chosen.points, crop_spec)
    picture, factor = fit(stored, max_side)
    return Portrait(
        picture=picture,
        pixels=sample_square(stored, crop, crop_spec.size),
        landmarks=in_crop_units(chosen.points, crop),
        crop=crop.scaled(factor, factor),
        stored_size=(stored.shape[1], stored.shape[0]),
        face_box=chosen.box,
    )


def choose_face(faces: list[Face], number: int | None, name: str, least_side: int) -> Face:
    """The face that is meant; faces under `least_side` are passed over where others are large enough.

    Args:
        faces: from left to right.
        number: 1-based among the large enough ones, or None.
        name: of the picture, for messages.

    Raises:
        NoFaceError: there is none. FaceTooSmallError: none is large enough.
        SeveralFacesError: more than one and no number, or a number that is not among them.
    """
    if not faces:
        raise NoFaceError(
            f"no face was found in {name}; choose a picture of a person who looks towards the camera, "
            "upright, with the whole face visible and lit"
        )
    large = [face for face in faces if round(face.side) >= least_side]
    if not large:
        largest = max(faces, key=lambda face: face.side)
        raise FaceTooSmallError(
            f"the face in {name} is too small: {largest.side:.0f} pixels at {_place(largest.box)}, "
            f"at least {least_side} are needed; use the picture at its full resolution or one taken from nearer"
        )
    if number is None and len(large) == 1:
        return large[0]
    if number is not None and 1 <= number <= len(large):
        return large[number - 1]
    boxes = [face.box for face in large]
    listed = "; ".join(f"{i}: {_place(box)}" for i, box in enumerate(boxes, 1))
    count = "1 face" if len(boxes) == 1 else f"{len(boxes)} faces"
    wrong = "" if number is None else f", but face {number} was asked for"
    raise SeveralFacesError(
        f"{name} shows {count}{wrong}; choose one with --face N, N from left to right: {listed} "
        "(left, top, right, bottom in pixels)",
        boxes,
    )


def _check_view(face: Face, name: str, spec: FaceSpec) -> None:
    if face.yaw > spec.greatest_yaw:
        raise PortraitError(
            f"the face in {name} is turned {face.yaw:.0f} degrees to the side; "
            f"choose a picture in which it looks towards the camera ({spec.greatest_yaw:.0f} degrees at most)"
        )
    if face.outside > spec.most_outside:
        raise PortraitError(
            f"the face in {name} is cut off by the picture's edge ({face.outside:.0%} of it lies outside); "
            "choose a picture that shows the whole face"
        )


def fit(stored: U8, max_side: int) -> tuple[U8, float]:
    """The picture with its long side at most `max_side` and even sides, and the factor it was resized by.

    Both sides are resized by the same factor; what does not fill the last row or column of an even size is
    cut off at the bottom or right. A picture that is small enough keeps its pixels.
    """
    height, width = stored.shape[:2]
    limit = max_side - max_side % 2
    factor = min(1.0, limit / max(width, height))
    if factor == 1.0:
        return np.ascontiguousarray(stored[: height - height % 2, : width - width % 2]), factor
    # The long side is the limit itself; rounding must not take a pixel from it.
    size = (_even(width * factor), _even(height * factor))
    box = (0.0, 0.0, min(width, size[0] / factor), min(height, size[1] / factor))
    resized = Image.fromarray(stored).resize(size, Image.Resampling.LANCZOS, box)
    return np.asarray(resized), factor


def _even(side: float) -> int:
    return max(2, int(side + 1e-9) // 2 * 2)


def _place(box: Box) -> str:
    return "({}, {}, {}, {})".format(*box)
