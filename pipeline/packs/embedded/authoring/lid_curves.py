"""The edges of an eye's lids as tables along the eye, and what of the keypoints' motion moves them."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import numpy.typing as npt

from .anatomy import EYES, scatter
from .regions import EyeRegion
from .sampling import sample
from .writer import Graph, Value

COLUMNS = 64
"""Entries of a table along an eye."""

TABLE_REACH = 0.7
"""Half length of a table in widths of the eye: the corners stand at 0.5."""

LASH_ROOTS = 0.02
"""How far below the landmarks the upper lid's edge is taken to be (widths of the eye): they stand in the lashes."""

OFFSETS, OFFSET_STEP, WINDOW = 14, 0.0125, 6
"""The lower lid is looked for at this many offsets below the landmarks, this far apart (widths of the eye), by the
contrast between as many rows above and below."""

LOWER_LASHES = 0.04
"""Height of the dark line of the lower lid's lashes, which ends where the skin begins: it is not the ball's."""

CHEEK_ROWS = [0.30, 0.34, 0.38, 0.42]
"""Where below the lower lid's landmarks there is but skin, widths of the eye."""

LOWER_LID_SHARE = 0.28
"""Part of the way that the lower lid makes when the eye closes."""

CLOSES_EARLY = 1.1
"""How much more than their landmarks lids move, so that no slit stays between edges that meet at landmarks only."""

_BINOMIAL = [math.comb(8, k) / 256 for k in range(9)]


def smoothing(times: int) -> npt.NDArray[np.float32]:
    """[64, 64] weights that smooth a table along the eye: `times` binomial windows of 9 entries, ends held."""
    once = np.zeros((COLUMNS, COLUMNS))
    for row in range(COLUMNS):
        for offset, weight in enumerate(_BINOMIAL, -4):
            once[row, min(max(row + offset, 0), COLUMNS - 1)] += weight
    smooth = once
    for _ in range(times - 1):
        smooth = (smooth[:, :, None] * once[None]).sum(1)
    return smooth.astype(np.float32)


class LidCurves:
    """Upper and lower edge of one eye: tables [64] of v (pixels, down) over u from -0.7 to 0.7 widths of the eye."""

    def __init__(self, g: Graph, image: Value, region: EyeRegion) -> None:
        self.g = g
        self.region = region
        self.reach = region.width * TABLE_REACH
        self.u = g.constant((np.arange(COLUMNS) * 2 + 1) / COLUMNS - 1) * self.reach
        self.upper_weights, self.lower_weights = (self._weights(edge[0]) for edge in (region.upper, region.lower))
        """[64, 9] share of each landmark of an edge, corners included, in each entry of its table."""
        upper, lower = ((w @ edge[1].unsqueeze(1)).reshape(COLUMNS) for w, edge in
                        ((self.upper_weights, region.upper), (self.lower_weights, region.lower)))  # fmt: skip
        landmarks_gap = lower - upper
        lower = lower + self._lower_still(image, lower)
        inner = g.smoothstep((region.width * 0.5 - self.u.abs()) / (region.width * 0.15))
        self.upper = g.minimum(upper + inner * (region.width * LASH_ROOTS), lower)
        self.lower = lower
        gain = (self.lower - self.upper + 1) / (landmarks_gap.clip(0, None) + 1)
        self.gain = gain.clip(0.5, 2).unsqueeze(1) * CLOSES_EARLY
        """[64, 1] gap of these edges over that of the landmarks: lids close a little before their landmarks do."""

    def _weights(self, knots: Value) -> Value:
        column = self.u.unsqueeze(1)
        after = [((column - knots[i]) / self.g.maximum(knots[i + 1] - knots[i], 0.05)).clip(0, 1) for i in range(8)]
        hats = [1 - after[0], *(a - b for a, b in itertools.pairwise(after)), after[-1]]
        return smoothing(1) @ self.g.concat(hats, axis=1)

    def _lower_still(self, image: Value, lower: Value) -> Value:
        """[64] how far below the landmarks the eyeball ends: where the colour turns from other than the cheek's to it.

        Of several offsets one is taken as the mean of a softmax over the contrast along the whole lid, with a prior for
        none: landmarks put the lower lids of large or drawn eyes too high.
        """
        width = self.region.width
        steps = np.arange(-WINDOW, OFFSETS + WINDOW)
        rows = self._rows(image, lower, steps * OFFSET_STEP)
        cheek = self._rows(image, lower, np.array(CHEEK_ROWS)).mean(1, keep=True)
        cheek = (smoothing(3) @ cheek.reshape(3, COLUMNS).transpose(1, 0)).transpose(1, 0).unsqueeze(1)
        seen = np.abs((np.arange(COLUMNS) * 2 + 1) / COLUMNS - 1) < 0.42 / TABLE_REACH
        other = ((rows - cheek).abs().sum(0) * seen.astype(np.float32)).sum(1) / float(seen.sum())
        scale = other.max(0) + 0.1
        edges = np.zeros((OFFSETS, len(steps)), np.float32)
        for i in range(OFFSETS):
            edges[i, i : i + WINDOW], edges[i, i + WINDOW : i + 2 * WINDOW] = 1 / WINDOW, -1 / WINDOW
        offsets = np.arange(OFFSETS) * OFFSET_STEP
        score = (edges @ other.unsqueeze(1)).reshape(OFFSETS) / scale * 24 - (offsets / 0.1) ** 2
        weights = (score - score.max(0)).exp()
        offset = (weights * offsets).sum(0) / weights.sum(0)
        across = (self.u / (width * 0.5)).abs().clip(0, 1)
        return (1 - across * across * across) * ((offset - LOWER_LASHES).clip(0, None) * width)

    def _rows(self, image: Value, edge: Value, below: npt.NDArray[Any]) -> Value:
        """[3, rows, 64] the image along copies of an edge table, some widths of the eye below it."""
        v = edge.unsqueeze(0) + self.region.width * below[:, None]
        x, y = self.region.frame.pixel(self.u.unsqueeze(0) + v * 0, v)
        return sample(self.g, image, x, y).reshape(3, len(below), COLUMNS)

    def at(self, table: Value, channels: int, u: Value) -> Value:
        """[1, channels, h, w] a table [channels, 64] at u [h, w] (pixels)."""
        x = (u / self.reach).unsqueeze(0, 3)
        places = self.g.concat([x, x * 0], axis=3)
        table = table.reshape(1, channels, 1, COLUMNS)
        return self.g.op("GridSample", table, places, mode="linear", padding_mode="border", align_corners=0)

    def motion(self) -> Value:
        """[2, 64, 7] what each lid landmark's motion along v adds to the upper and the lower table."""
        both = (self.upper_weights, self.lower_weights)
        return self.g.concat([(weights[:, 1:8] * self.gain).unsqueeze(0) for weights in both], axis=0)


LID_POINTS = [point for eye in EYES for point in (*eye.upper, *eye.lower)]
"""Landmarks of upper and lower lid, right eye, then left eye: the order of `lid_weights`."""


def own_motion(groups: list[list[int]]) -> npt.NDArray[np.float32]:
    """[groups, 478] mean displacement of each group of landmarks."""
    return scatter([{p: 1 / len(group) for p in group} for group in groups]).T.copy()
