"""Placing buffers with known lifetimes in one block of memory, so that those alive together never overlap.

This is dynamic storage allocation (interval colouring), which is NP-hard; first-fit in different orders and a
seeded search over orders give placements, and the most bytes alive at once is a bound that none can pass under.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

ALIGNMENT = 64
"""Bytes; ONNX Runtime aligns each buffer to a cache line, which is also the width of an AVX-512 register."""


@dataclass(frozen=True)
class Buffer:
    """Bytes that are needed from step `first` to step `last`, both inclusive."""

    name: str
    size: int
    first: int
    last: int

    @property
    def room(self) -> int:
        """Its size rounded up to the alignment."""
        return -(-self.size // ALIGNMENT) * ALIGNMENT

    def meets(self, other: Buffer) -> bool:
        """Whether both are alive at some step."""
        return self.first <= other.last and other.first <= self.last


@dataclass(frozen=True)
class Placement:
    """Where each buffer begins, in bytes from the block's start."""

    buffers: tuple[Buffer, ...]
    offsets: tuple[int, ...]

    @property
    def peak(self) -> int:
        """Bytes of the block."""
        return max((at + b.room for b, at in zip(self.buffers, self.offsets, strict=True)), default=0)


def total(buffers: Sequence[Buffer]) -> int:
    """Bytes when nothing is ever used again."""
    return sum(buffer.room for buffer in buffers)


def alive(buffers: Sequence[Buffer]) -> list[int]:
    """Bytes alive at each step."""
    steps = [0] * (max((buffer.last for buffer in buffers), default=-1) + 2)
    for buffer in buffers:
        steps[buffer.first] += buffer.room
        steps[buffer.last + 1] -= buffer.room
    for step in range(1, len(steps)):
        steps[step] += steps[step - 1]
    return steps[:-1]


def lower_bound(buffers: Sequence[Buffer]) -> int:
    """The most bytes alive at once: no placement needs fewer."""
    return max(alive(buffers), default=0)


def by_time(buffers: Sequence[Buffer]) -> Placement:
    """First-fit in the order in which buffers are first needed."""
    return first_fit(buffers, lambda buffer: (buffer.first, -buffer.room))


def by_size(buffers: Sequence[Buffer]) -> Placement:
    """First-fit with the largest buffers first."""
    return first_fit(buffers, lambda buffer: (-buffer.room, buffer.first))


def by_area(buffers: Sequence[Buffer]) -> Placement:
    """First-fit with the buffers that take most bytes for most steps first."""
    return first_fit(buffers, lambda buffer: (-buffer.room * (buffer.last - buffer.first + 1), buffer.first))


def first_fit(buffers: Sequence[Buffer], key: Callable[[Buffer], tuple[int, ...]]) -> Placement:
    """Put buffers one after the other, in the order of a key, at the lowest offset that is free."""
    order = sorted(range(len(buffers)), key=lambda index: (*key(buffers[index]), index))
    return Placement(tuple(buffers), _place([buffer.room for buffer in buffers], _neighbours(buffers), order))


def search(buffers: Sequence[Buffer], *, seed: int = 0, rounds: int = 400) -> Placement:
    """The best of the first-fits, then hill climbing over the order in which buffers are placed.

    A round moves a buffer that reaches the top of the block to an earlier place in the order, and keeps the new
    order when the block does not grow. The same seed gives the same placement; it ends early at the lower bound.
    """
    bound = lower_bound(buffers)
    best = min((by_size(buffers), by_area(buffers), by_time(buffers)), key=lambda placement: placement.peak)
    neighbours, rooms = _neighbours(buffers), [buffer.room for buffer in buffers]

    def placed(order: Sequence[int]) -> tuple[int, tuple[int, ...]]:
        offsets = _place(rooms, neighbours, order)
        return max((at + room for at, room in zip(offsets, rooms, strict=True)), default=0), offsets

    order = sorted(range(len(buffers)), key=lambda index: (best.offsets[index], index))
    least = best.peak
    peak, offsets = placed(order)
    if peak < least:
        least, best = peak, Placement(best.buffers, offsets)
    chance = random.Random(seed)
    for _ in range(rounds):
        if least <= bound:
            break
        top = [i for i, (at, room) in enumerate(zip(offsets, rooms, strict=True)) if at + room == peak]
        moved = chance.choice(top)
        place = order.index(moved)
        trial = order.copy()
        trial.insert(chance.randrange(place + 1), trial.pop(place))
        if chance.random() < 0.5:  # a swap besides, to leave orders in which no single move helps
            a, b = chance.randrange(len(trial)), chance.randrange(len(trial))
            trial[a], trial[b] = trial[b], trial[a]
        high, tried = placed(trial)
        if high <= peak:
            order, peak, offsets = trial, high, tried
        if high < least:
            least, best = high, Placement(best.buffers, tried)
    return best


def _neighbours(buffers: Sequence[Buffer]) -> list[list[int]]:
    return [[j for j, other in enumerate(buffers) if j != i and other.meets(b)] for i, b in enumerate(buffers)]


def _place(rooms: Sequence[int], neighbours: Sequence[Sequence[int]], order: Sequence[int]) -> tuple[int, ...]:
    offsets = [-1] * len(rooms)
    for index in order:
        room = rooms[index]
        taken = sorted([(offsets[j], rooms[j]) for j in neighbours[index] if offsets[j] >= 0])
        at = 0
        for start, size in taken:
            if at + room <= start:
                break
            at = max(at, start + size)
        offsets[index] = at
    return tuple(offsets)


def picture(placement: Placement, *, columns: int = 96, rows: int = 24) -> str:
    """The block over time as text: steps to the right, offsets upwards, a letter a buffer, a dot where it is free."""
    steps = max((buffer.last for buffer in placement.buffers), default=-1) + 1
    if not steps or not placement.peak:
        return "(empty)"
    columns = min(columns, steps)
    grid = [["." for _ in range(columns)] for _ in range(rows)]
    largest = sorted(zip(placement.buffers, placement.offsets, strict=True), key=lambda item: item[0].room)
    for number, (buffer, offset) in enumerate(largest):
        low, high = offset * rows // placement.peak, -(-(offset + buffer.room) * rows // placement.peak)
        left, right = buffer.first * columns // steps, buffer.last * columns // steps
        for row in grid[low:high]:
            row[left : right + 1] = LETTERS[number % len(LETTERS)] * (right + 1 - left)
    lines = ["".join(row) for row in reversed(grid)]
    return "\n".join([f"{placement.peak / 2**20:.1f} MiB", *lines, f"0{'step'.rjust(columns - 6)} {steps - 1}"])


LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
