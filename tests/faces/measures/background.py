"""How still the background stands behind a head that turns."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache

import numpy as np
import onnxruntime as ort

from pipeline.packs.embedded.authoring.matte import SEGMENTER
from pipeline.values import U8

from ..acting import POSES, SIZE, Actor
from .blackbox import F64, Mask, grown

TURNS = [name for name, pose in POSES.items() if pose.yaw or pose.pitch or pose.roll]

SEEN = 0.1
"""Coverage from which the person is seen in a place."""

AWAY = 32
"""Pixels from the person to what a turning head never comes to cover."""


@dataclass(frozen=True)
class Stillness:
    """Grey levels of 255, means over the background: of the worst pose, with its name."""

    difference: float
    pose: str


@cache
def _segmenter() -> ort.InferenceSession:
    options = ort.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 3
    return ort.InferenceSession(str(SEGMENTER), options, providers=["CPUExecutionProvider"])


def coverage(photo: U8) -> F64:
    """[512, 512] of a photo [512, 512, 3], by the person in it, 0..1."""
    half = photo.reshape(SIZE // 2, 2, SIZE // 2, 2, 3).mean((1, 3), dtype=np.float32) / 255
    (person,) = _segmenter().run(None, {"image": half.transpose(2, 0, 1)[None]})
    return np.asarray(person[0, 0], np.float64).repeat(2, 0).repeat(2, 1)


def behind(photo: U8, away: int = AWAY) -> Mask:
    """[512, 512] the background, so many pixels away from the person."""
    return ~grown(coverage(photo) > SEEN, away)


def stillness(actor: Actor) -> Stillness:
    """Mean absolute difference from the photo in its background, over the poses in which the head turns."""
    looked, photo = behind(actor.photo), actor.photo.astype(np.float64)
    if not looked.any():
        return Stillness(math.nan, "no background")
    frames = dict(zip(TURNS, actor.act(*(POSES[name] for name in TURNS)), strict=True))
    found = {name: float(np.abs(frame - photo)[looked].mean()) for name, frame in frames.items()}
    worst = max(found, key=lambda name: found[name])
    return Stillness(found[worst], worst)
