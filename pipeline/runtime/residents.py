"""Which sessions a process holds, and which of them goes when another needs the memory."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Protocol


class Resident(Protocol):
    """What holds a session, or could."""

    @property
    def predicted_bytes(self) -> int:
        """What its session is predicted to take."""

    def close(self) -> bool:
        """Let the session go unless a run is under way; whether it did."""


class Residents:
    """The open sessions of a process, the one that was used last at the end.

    When another one does not fit beside them, those that were not used for longest are let go, and opened again when
    they are wanted: a job that switches the preset does not hold two large generators, while small models stay.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open: list[Resident] = []
        self.opening = threading.RLock()
        """Held while a session is made: one after another, so that what two need while they load is not summed."""

    def used(self, resident: Resident) -> None:
        """Its session runs."""
        with self._lock:
            if resident in self._open:
                self._open.remove(resident)
            self._open.append(resident)

    def closed(self, resident: Resident) -> None:
        """Its session was let go."""
        with self._lock:
            if resident in self._open:
                self._open.remove(resident)

    def total(self) -> int:
        """Bytes that the open sessions are predicted to take."""
        with self._lock:
            return sum(each.predicted_bytes for each in self._open)

    def make_room(self, wanted: Resident, limit: int) -> None:
        """Let sessions go until the wanted one fits within the limit, or none is left that can go."""
        self._release(wanted, lambda: self.total() + wanted.predicted_bytes > limit)

    def release_others(self, wanted: Resident) -> bool:
        """Let every session go that no run holds: the memory is gone, whatever was predicted; whether one went."""
        return self._release(wanted, lambda: True)

    def _release(self, wanted: Resident, more: Callable[[], bool]) -> bool:
        with self._lock:
            others = [each for each in self._open if each is not wanted]
        went = False
        for each in others:
            if not more():
                break
            went = each.close() or went
        return went


RESIDENTS = Residents()
"""Of this process, whatever packs its models are from."""
