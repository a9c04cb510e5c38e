"""Noise over time of what should not move, and of what moves when its motion is taken back."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..acting import SIZE, Actor
from .blackbox import F64, Coded, openings

STILL = 0.1
"""Pixels: what moves less over the whole film is still."""


@dataclass(frozen=True)
class Steadiness:
    """Grey levels of 255. `still`: root mean square over time of the still regions' deviation from their mean;
    `still_part`: of the frame; `background`: the same in the corners. `shimmer`: 99th percentile over the moving
    face's pixels of the deviation from the photo at the place shown; `jumps`: largest change between two frames of
    the still regions."""

    still: float
    still_part: float
    background: float
    shimmer: float
    jumps: float


def steadiness(actor: Actor, coded: Coded, keypoints: np.ndarray, every: int = 3) -> Steadiness:
    """Over a talking film, `keypoints` [N, 478, 3], before encoding; motion is followed on every so many frames."""
    frames: F64 = np.stack([np.clip(f, 0, 1).astype(np.float64) * 255 for f in actor.frames(keypoints)])
    looked = range(0, len(keypoints), every)
    at = np.stack(np.meshgrid(np.arange(SIZE), np.arange(SIZE)), 2).astype(np.float64)
    photo = actor.photo.astype(np.float64)
    moved, allowed, strayed = np.zeros((SIZE, SIZE)), np.zeros((SIZE, SIZE), bool), []
    for k in looked:
        shown = coded.shown(keypoints[k])
        backward = shown.backward
        moved = np.maximum(moved, np.hypot(*np.moveaxis(backward - at, 2, 0)))
        opening = openings(keypoints[k], actor.appearance.source.keypoints)
        allowed |= opening
        strayed.append(np.abs(bilinear(photo, backward) - frames[k]).max(2)[~(opening | shown.made_up)])
    still = (moved < max(STILL, 3 * _code_error(coded))) & ~allowed
    change = np.diff(frames, axis=0)
    corner = SIZE // 12
    corners = np.concatenate([frames[:, :corner, :corner], frames[:, :corner, -corner:]], axis=2)
    return Steadiness(
        still=_over_time(frames[:, still]),
        still_part=float(still.mean()),
        background=_over_time(corners.reshape(len(frames), -1, 3)),
        shimmer=float(np.percentile(np.concatenate(strayed), 99)),
        jumps=float(np.abs(change[:, still]).max()) if still.any() else 0.0,
    )


def _over_time(values: F64) -> float:
    """Root mean square deviation from each pixel's mean; [frames, pixels, 3]."""
    return float(np.sqrt(values.var(axis=0).mean())) if values.size else 0.0


def _code_error(coded: Coded) -> float:
    """How exactly coordinates come back from an undriven frame's corner, pixels."""
    source = coded.actor.appearance.source.keypoints
    backward = coded.backward(source)
    at = np.stack(np.meshgrid(np.arange(SIZE), np.arange(SIZE)), 2)
    return float(np.percentile(np.abs(backward - at)[8:48, 8:-8], 99))


def bilinear(picture: F64, places: F64) -> F64:
    """[512, 512, 3] a picture at fractional pixel indices [512, 512, 2]."""
    x, y = np.clip(np.moveaxis(places, 2, 0), 0, SIZE - 1.001)
    left, top = x.astype(int), y.astype(int)
    u, v = (x - left)[..., None], (y - top)[..., None]
    upper = picture[top, left] * (1 - u) + picture[top, left + 1] * u
    lower = picture[top + 1, left] * (1 - u) + picture[top + 1, left + 1] * u
    return upper * (1 - v) + lower * v
