"""How a film's work is divided: chunks of key frames to render, segments of frames to encode."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipeline.stages.film_format import segment_ranges
from pipeline.values import KeyFrame, Repair


@dataclass(frozen=True)
class Plan:
    """A film's division.

    `numbers`: [n] int64, its key frames' numbers. `frames`: film frames. `chunk_size`: key frames a chunk.
    `segments`: first and last chunk that each segment needs.
    """

    numbers: NDArray[np.int64]
    frames: int
    chunk_size: int
    segments: list[list[int]]

    @classmethod
    def divide(cls, numbers: NDArray[np.int64], frames: int, segment_frames: int, chunk_size: int) -> Plan:
        """Divide a film of these key frames."""
        segments = []
        for part in segment_ranges(frames, segment_frames):
            first, last = _around(numbers, part)
            segments.append([first // chunk_size, last // chunk_size])
        return cls(numbers, frames, chunk_size, segments)

    @property
    def chunks(self) -> int:
        return -(-len(self.numbers) // self.chunk_size)

    def chunk(self, number: int) -> NDArray[np.int64]:
        """Key frames of one chunk."""
        return self.numbers[number * self.chunk_size : (number + 1) * self.chunk_size]

    def keys_around(self, part: range) -> set[int]:
        """Key frames from the last one at or before these frames to the first one at or after them."""
        first, last = _around(self.numbers, part)
        return set(self.numbers[first : last + 1].tolist())

    def outline(self) -> dict[str, Any]:
        """What the canvas needs of it, as small JSON."""
        return {
            "frames": self.frames,
            "key_frames": len(self.numbers),
            "chunks": self.chunks,
            "segments": self.segments,
        }


def _around(numbers: NDArray[np.int64], part: range) -> tuple[int, int]:
    first = int(np.searchsorted(numbers, part[0], "right")) - 1
    last = int(np.searchsorted(numbers, part[-1], "left"))
    return first, last


@dataclass(frozen=True)
class Chunk:
    """Rendered key frames, settled among themselves.

    `clean`: whether the last frame is as the first try made it, which the next chunk assumes.
    """

    frames: list[KeyFrame]
    repairs: list[Repair]
    clean: bool

    @classmethod
    def of(cls, frames: Sequence[KeyFrame], repairs: Sequence[Repair]) -> Chunk:
        repaired = {repair.index for repair in repairs}
        return cls(list(frames), list(repairs), frames[-1].index not in repaired)

    @property
    def last(self) -> KeyFrame:
        return self.frames[-1]
