"""The rules: how lips that say given phones move.

A phone's hold on the lips fades with the distance in time (dominance functions, Cohen & Massaro 1993): lips
get ready for what comes (anticipation) and keep what was (carry-over). Rounded vowels reach farthest; p, b, m
yield to nobody; sounds made by the tongue leave the lips to their neighbours, as far as the eye still reads them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..authoring.visemes import CLASSES, CLOSED
from .phones import UNSURE

FRAME_STEPS = 4
"""Labels of 10 ms in a frame of 25 fps."""

STRENGTH = {"silence": 0.7, "p b m": 2.0, "f v": 1.6, "th": 0.8, "t d": 0.5, "k g": 0.5, "s z sh": 0.9, "r l": 0.7,
            "aa": 1.0, "eh": 1.0, "iy": 1.0, "ao": 1.2, "uw": 1.3}  # fmt: skip
"""How much of the lips a phone claims."""

ANTICIPATION_MS = {"silence": 30, "p b m": 30, "f v": 35, "ao": 90, "uw": 110}
CARRY_OVER_MS = {"silence": 30, "p b m": 20, "f v": 30, "ao": 55, "uw": 65}
OTHERWISE_MS = 40
"""Time in which a phone's hold falls to 1/e, before its start and after its end."""

OWN_SHARE = 0.55
"""So much of the lips belongs to the phone being said, whatever its neighbours claim."""

_REACH = 25


def viseme_shares(labels: NDArray[np.integer[Any]]) -> NDArray[np.float32]:
    """[N] classes in steps of 10 ms -> [N, 13] shares of the visemes, each row sums to 1; to 0 where it is UNSURE."""
    sure = np.asarray(labels) != UNSURE
    said = np.eye(len(CLASSES), dtype=np.float32)[labels] * sure[:, None]
    ahead = np.exp(-10 / np.array([ANTICIPATION_MS.get(c, OTHERWISE_MS) for c in CLASSES], np.float32))
    behind = np.exp(-10 / np.array([CARRY_OVER_MS.get(c, OTHERWISE_MS) for c in CLASSES], np.float32))
    hold = said.copy()
    for k in range(1, min(_REACH, len(said))):
        np.maximum(hold[:-k], said[k:] * ahead**k, out=hold[:-k])
        np.maximum(hold[k:], said[:-k] * behind**k, out=hold[k:])
    hold *= np.array([STRENGTH[c] for c in CLASSES], np.float32)
    hold /= hold.sum(1, keepdims=True) + 1e-20
    return np.asarray((OWN_SHARE * said + (1 - OWN_SHARE) * hold) * sure[:, None])


def closed_frames(cover: Any) -> Any:
    """Which frames show closed lips: every p, b, m closes the frame that it fills most, however short it is.

    cover: [..., N + 2] part of each frame in which the lips are closed, one frame before and after included;
    an array of numpy or torch. Returns [..., N] of truth.
    """
    here = cover[..., 1:-1]
    fullest = (here > 0.01) & (here >= cover[..., :-2]) & (here > cover[..., 2:])
    return (here >= 0.5) | fullest


def frame_targets(labels: NDArray[np.integer[Any]]) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
    """[N] labels -> shares [M, 13] and closed lips [M] of the frames, M = N // 4."""
    frames = len(labels) // FRAME_STEPS
    labels = labels[: frames * FRAME_STEPS]
    shares = viseme_shares(labels).reshape(frames, FRAME_STEPS, -1).mean(1)
    cover = (labels == CLOSED).reshape(frames, FRAME_STEPS).mean(1)
    return shares, closed_frames(np.pad(cover, 1))


def frame_classes(labels: NDArray[np.integer[Any]]) -> NDArray[np.intp]:
    """[N] labels -> [N // 4] the class that fills most of each frame; the earlier one of two that share it."""
    frames = len(labels) // FRAME_STEPS
    blocks = labels[: frames * FRAME_STEPS].reshape(frames, FRAME_STEPS)
    counts = np.stack([(blocks == c).sum(1) for c in range(len(CLASSES))], axis=1)
    best = counts == counts.max(1, keepdims=True)
    first = np.take_along_axis(best, blocks, axis=1).argmax(1)
    return blocks[np.arange(frames), first].astype(np.intp)
