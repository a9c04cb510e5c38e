"""ONNX Runtime's arena (best fit with coalescing, bfc_arena.cc), simulated to tell how much of it is ever touched."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from .arena import Buffer

CHUNK = 256
"""Every chunk is a multiple of this many bytes."""
FIRST_REGION = 1 << 20
DEAD_BYTES = 128 << 20
"""A free chunk that is larger than asked by this much is split, whatever the ratio."""


@dataclass
class _Chunk:
    region: int
    start: int
    size: int
    taken: bool = False


class Arena:
    """Regions that double in size; a request takes the smallest free chunk that is large enough.

    The chunk is split only when it is at least twice as large as asked. Untouched pages of a region take no memory.
    """

    def __init__(self, first_region: int = FIRST_REGION) -> None:
        self._next = first_region
        self._chunks: list[_Chunk] = []  # by region and start
        self._touched: list[int] = []

    @property
    def touched(self) -> int:
        """Bytes that were part of a buffer at some time: the arena gives nothing back."""
        return sum(self._touched)

    def take(self, size: int) -> _Chunk:
        """Allocate."""
        asked = -(-size // CHUNK) * CHUNK
        fits = [chunk for chunk in self._chunks if not chunk.taken and chunk.size >= asked]
        chunk = min(fits, key=lambda chunk: (chunk.size, chunk.region, chunk.start), default=None) or self._extend(
            asked
        )
        if chunk.size >= 2 * asked or chunk.size - asked >= DEAD_BYTES:
            rest = _Chunk(chunk.region, chunk.start + asked, chunk.size - asked)
            self._chunks.insert(self._chunks.index(chunk) + 1, rest)
            chunk.size = asked
        chunk.taken = True
        self._touched[chunk.region] = max(self._touched[chunk.region], chunk.start + asked)
        return chunk

    def free(self, chunk: _Chunk) -> None:
        """Release, and join with free neighbours."""
        chunk.taken = False
        place = self._chunks.index(chunk)
        for left in (place, place - 1):
            if left < 0 or left + 1 >= len(self._chunks):
                continue
            a, b = self._chunks[left], self._chunks[left + 1]
            if not a.taken and not b.taken and a.region == b.region:
                a.size += b.size
                del self._chunks[left + 1]

    def _extend(self, asked: int) -> _Chunk:
        doubled = False
        while self._next < asked:
            self._next, doubled = self._next * 2, True
        chunk = _Chunk(len(self._touched), 0, self._next)
        self._chunks.append(chunk)
        self._touched.append(0)
        if not doubled:
            self._next *= 2
        return chunk


def run(arena: Arena, buffers: Iterable[Buffer]) -> None:
    """One run of a graph that allocates value by value."""
    listed = sorted(buffers, key=lambda buffer: buffer.first)
    held: list[tuple[Buffer, _Chunk]] = []
    for buffer in listed:
        for old in [pair for pair in held if pair[0].last < buffer.first]:
            held.remove(old)
            arena.free(old[1])
        held.append((buffer, arena.take(buffer.size)))
    for _, chunk in held:
        arena.free(chunk)
