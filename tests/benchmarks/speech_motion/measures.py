"""Measures of lips against phones with known times, all at 25 fps.

- Accuracy: part of frames whose motion is nearest to the shape (visemes.py) of the phone that fills most of the frame.
- Closure: lips are closed where the inner lips are nearer than 3 % of the mouth's width. A p, b or m (neighbours
  count as one) is met if they are closed within a frame of it; a closing outside of pauses is right if it is
  within a frame of one.
- Opening: correlation of the lips' distance with that of the rule's own motion.
- Lag: shift in frames at which the two correlate best, parabola through the best three; above 0 = late.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipeline.packs.embedded.authoring.visemes import (
    CLASSES,
    CLOSED,
    CLOSED_GAP,
    SILENCE,
    TEMPLATES,
    lip_gap,
    nearest_viseme,
)
from pipeline.packs.embedded.training.targets import frame_classes, frame_targets

Floats = NDArray[np.floating[Any]]

LAGS = range(-6, 7)


def runs(truth: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """[N] -> (first, one past the last) of each run of truth."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], truth, [False]]).astype(int)))
    return [(int(a), int(b)) for a, b in edges.reshape(-1, 2)]


def rule_motion(labels: NDArray[np.integer[Any]]) -> Floats:
    """[N] classes in steps of 10 ms -> [N // 4, 52] the motion that the rules ask for."""
    shares, shut = frame_targets(labels)
    return np.where(shut[:, None], TEMPLATES[CLOSED], shares @ TEMPLATES)


@dataclass
class Tally:
    """Adds up over recordings."""

    confusion: NDArray[np.int64] = field(default_factory=lambda: np.zeros((len(CLASSES),) * 2, np.int64))
    asked: int = 0
    met: int = 0
    closings: int = 0
    right: int = 0
    gaps: list[Floats] = field(default_factory=list)
    wanted: list[Floats] = field(default_factory=list)

    def add(self, expression: Floats, labels: NDArray[np.integer[Any]]) -> None:
        """A recording: [M, 52] coefficients, [N] classes in steps of 10 ms."""
        classes = frame_classes(labels)
        frames = min(len(classes), len(expression))
        classes, expression = classes[:frames], expression[:frames]
        self.tally_classes(nearest_viseme(expression), classes)
        gap = lip_gap(expression)
        self.tally_closure(gap < CLOSED_GAP, labels[: 4 * frames])
        self.gaps.append(gap)
        self.wanted.append(lip_gap(rule_motion(labels)[:frames]))

    def tally_classes(self, said: NDArray[np.integer[Any]], classes: NDArray[np.integer[Any]]) -> None:
        np.add.at(self.confusion, (classes, said), 1)

    def tally_closure(self, shut: NDArray[np.bool_], labels: NDArray[np.integer[Any]]) -> None:
        """[M] closed lips against [4 M] classes."""
        cover = (labels == CLOSED).reshape(-1, 4).any(1)
        near = np.zeros(len(shut), bool)
        for first, end in runs(labels == CLOSED):
            around = slice(max(first // 4 - 1, 0), (end - 1) // 4 + 2)
            self.asked += 1
            self.met += bool(shut[around].any())
            near[around] = True
        near |= cover
        pause = (labels == SILENCE).reshape(-1, 4).any(1)
        for first, end in runs(shut):
            if not pause[first:end].any():
                self.closings += 1
                self.right += bool(near[first:end].any())

    @property
    def accuracy(self) -> float:
        return float(np.trace(self.confusion) / self.confusion.sum())

    @property
    def recall(self) -> float:
        return self.met / max(self.asked, 1)

    @property
    def precision(self) -> float:
        return self.right / max(self.closings, 1)

    def correlations(self) -> Floats:
        """Of the opening with the rule's, at each of LAGS."""

        def at(lag: int) -> float:
            late = [g[max(lag, 0) : len(g) + min(lag, 0)] for g in self.gaps]
            early = [w[max(-lag, 0) : len(w) + min(-lag, 0)] for w in self.wanted]
            return float(np.corrcoef(np.concatenate(late), np.concatenate(early))[0, 1])

        return np.array([at(lag) for lag in LAGS])

    @property
    def opening(self) -> float:
        return float(self.correlations()[LAGS.index(0)])

    @property
    def lag(self) -> float:
        match = self.correlations()
        best = int(np.clip(match.argmax(), 1, len(match) - 2))
        before, here, after = match[best - 1 : best + 2]
        return LAGS[best] + 0.5 * (before - after) / (before - 2 * here + after)
