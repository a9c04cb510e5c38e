"""Where every pixel of a frame comes from, found without looking into the graphs.

The features are made again from pictures whose colours are coordinates; the generator, given those, shows at each pixel
the place of the photo that it samples. Outside the mouth's and the eyes' openings, where new things are drawn, this is
the frame's backward map. Red, green and blue are three phases of a wave, along x in one picture and along y in another,
so that colours kept in 8 bits give places to a few hundredths of a pixel; ramps in a third one tell which wave. All are
equally light everywhere: what is brightened where a photo is dark stays as it is, and a shadow, which takes the same
share of each colour, moves nothing.

No person is seen in such pictures, so that all of them goes with the head. How much of a pixel the background has is
found apart: black heads before a white and a black background, with the photo's own coverage.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from pipeline.packs.embedded.authoring.anatomy import EYES, LOWER_EDGE, UPPER_EDGE
from pipeline.values import F32, Appearance

from ..acting import SIZE, Actor, in_pixels

F64 = NDArray[np.float64]
Mask = NDArray[np.bool_]
LOW, HIGH = 0.15, 0.85
"""The part of the range that colours take: cubic interpolation may overshoot."""
PHASES = np.array([0, 2, 4]) * (np.pi / 3)
RAMP = (0.3, 0.7)
"""The same of two ramps, so that a third colour makes up for both."""
RAMPS_SUM = 1.5
"""Of the three colours of the ramps."""
WAVE = 32
"""Pixels; much more than a ramp's error in 8 bits, 5 pixels, and much less smooth than what 8 bits can follow."""


def coordinate_pictures() -> tuple[F32, F32, F32]:
    """[1, 3, 512, 512] each: waves along x, waves along y, and ramps along both."""
    place = np.arange(SIZE, dtype=np.float64)
    waves = 0.5 + np.sin(place * (2 * np.pi / WAVE) + PHASES[:, None]) * (HIGH - LOW) / 2
    ramp = RAMP[0] + (RAMP[1] - RAMP[0]) * place / (SIZE - 1)
    x, y = np.broadcast_arrays(ramp[None, :], ramp[:, None])
    pictures = (waves[:, None, :], waves[:, :, None], np.stack([x, y, RAMPS_SUM - x - y]))
    columns, rows, ramps = (
        np.ascontiguousarray(np.broadcast_to(each, (1, 3, SIZE, SIZE)), np.float32) for each in pictures
    )
    return columns, rows, ramps


def places(waves: F32, ramp: F32) -> F64:
    """[512, 512] coordinates that frames of such colours show, waves [512, 512, 3] and a channel of the ramps."""
    shown = waves.astype(np.float64)
    fine = np.arctan2(shown @ np.cos(PHASES), shown @ np.sin(PHASES)) * (WAVE / (2 * np.pi))
    coarse = (ramp.astype(np.float64) - RAMP[0]) / (RAMP[1] - RAMP[0]) * (SIZE - 1)
    return fine + WAVE * np.round((coarse - fine) / WAVE)


def decoded(columns: F32, rows: F32, ramps: F32) -> F64:
    """[512, 512, 2] x, y of the places that frames [512, 512, 3] of the three pictures show."""
    lit = ramps * (RAMPS_SUM / np.maximum(ramps.sum(2, keepdims=True), 1e-3))
    return np.stack([places(shown, lit[:, :, axis]) for axis, shown in enumerate((columns, rows))], 2)


MOTION = ("_weights", "_rigid", "_steps")
"""Endings of the names of features that tell how things move: the photo's own, as they depend on who is seen in it."""

CLEAR, FULL = 0.02, 0.98
"""Coverage by the head below which a pixel shows the background, and from which the head alone."""

SPREAD = 12
"""Pixels about the head that the background is made up for, too."""


@dataclass(frozen=True)
class Shown:
    """Where a frame's pixels come from. `backward` [512, 512, 2]: places in the photo; `made_up` [512, 512]: where both
    head and background show, or the background that the photo's head hides."""

    backward: F64
    made_up: Mask


@dataclass(frozen=True)
class Coded:
    """An actor with features of the coordinate pictures."""

    actor: Actor
    appearances: tuple[Appearance, ...]

    @classmethod
    def of(cls, actor: Actor) -> Coded:
        model, source = actor.studio.models.get("appearance"), actor.appearance.source
        given = ({"image": picture, "kp_source": source.keypoints[None]} for picture in coordinate_pictures())
        own = {name: kept for name, kept in actor.appearance.features.items() if name.endswith(MOTION)}
        return cls(actor, tuple(Appearance({**model.run(each), **own}, source) for each in given))

    def shown(self, keypoints: F32) -> Shown:
        """Of the frame of these keypoints [478, 3]."""
        cover = self.cover(keypoints)
        at = np.stack(np.meshgrid(np.arange(SIZE), np.arange(SIZE)), 2).astype(np.float64)
        backward = np.where(cover[:, :, None] < CLEAR, at, self.backward(keypoints))
        return Shown(backward, grown((cover < FULL) & ((cover >= CLEAR) | self._hiding), 2))

    def cover(self, keypoints: F32) -> F64:
        """[512, 512] how much of each pixel of the frame, 0..1, the head covers."""
        features = self.actor.appearance.features
        black = {"head_color": features["head_color"] * 0}
        white, dark = (
            replace(self.actor.appearance, features={**features, **black, "background": features["background"] * 0 + v})
            for v in (255, 0)
        )
        light, none = (next(self.actor.frames(keypoints[None], each)) for each in (white, dark))
        return 1 - (light - none).astype(np.float64).mean(2)

    @cached_property
    def _hiding(self) -> Mask:
        """[512, 512] the photo's head and a little around."""
        return grown(self.cover(self.actor.appearance.source.keypoints) > CLEAR, SPREAD)

    def backward(self, keypoints: F32) -> F64:
        """[512, 512, 2] x, y of the photo (pixel indices) that the head layer shows at each pixel of the frame."""
        return decoded(*(next(self.actor.frames(keypoints[None], each)) for each in self.appearances))


def inside(points: F64) -> Mask:
    """[512, 512] pixels whose centres lie in a polygon [n, 2]."""
    found: Mask = np.zeros((SIZE, SIZE), bool)
    left, top = np.clip(np.floor(points.min(0)).astype(int), 0, SIZE)
    right, bottom = np.clip(np.ceil(points.max(0)).astype(int), 0, SIZE)
    y, x = np.mgrid[top:bottom, left:right] + 0.5
    within = np.zeros(x.shape, bool)
    for (x0, y0), (x1, y1) in zip(points, np.roll(points, -1, axis=0), strict=True):
        if y0 != y1:
            within = within ^ ((y0 > y) != (y1 > y)) & (x < x0 + (y - y0) * (x1 - x0) / (y1 - y0))
    found[top:bottom, left:right] = within
    return found


def grown(mask: Mask, pixels: int) -> Mask:
    """The mask and all within so many pixels of it (a square's reach)."""
    for axis in (0, 1):
        padded = np.pad(mask, [(pixels, pixels) if a == axis else (0, 0) for a in (0, 1)])
        mask = np.asarray(np.lib.stride_tricks.sliding_window_view(padded, 2 * pixels + 1, axis).any(-1))
    return mask


def openings(keypoints: F32, source: F32, lips: int = 3, lids: int = 6) -> Mask:
    """[512, 512] the mouth's and the eyes' openings and so many pixels around: there new things are drawn.

    Lids slide over what the photo shows open, so that an eye's opening is also the photo's (`source`), taken along by
    the eye's corners."""
    points, before = in_pixels(keypoints)[:, :2], in_pixels(source)[:, :2]
    eyes = np.zeros((SIZE, SIZE), bool)
    for eye in EYES:
        ring = [*eye.upper_edge, *eye.lower_edge[::-1]]
        for outline in (points[ring], _carried(before[ring], before[eye.corners], points[eye.corners])):
            eyes = eyes | inside(outline) | _near(outline)
    mouth = inside(points[[*UPPER_EDGE, *LOWER_EDGE[::-1]]]) | _near(points[UPPER_EDGE])
    return grown(mouth, lips) | grown(eyes, lids)


def _carried(outline: F64, before: F64, after: F64) -> F64:
    """An outline moved by the similarity that takes two points to two others."""
    x, a, b = outline @ [1, 1j], before @ [1, 1j], after @ [1, 1j]
    moved = b[0] + (x - a[0]) * ((b[1] - b[0]) / (a[1] - a[0]))
    return np.stack([moved.real, moved.imag], 1)


def _near(line: F64) -> Mask:
    """The pixels that a polyline passes."""
    found = np.zeros((SIZE, SIZE), bool)
    for a, b in pairwise(line):
        steps = np.linspace(a, b, 2 + int(2 * np.abs(b - a).max()))
        x, y = np.clip(steps.astype(int), 0, SIZE - 1).T
        found[y, x] = True
    return found
