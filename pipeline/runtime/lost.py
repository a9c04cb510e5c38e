"""Devices that this process has lost: after an illegal access, an uncorrectable error and the like, CUDA answers every
later call of the process with that error, until it ends.

What ONNX Runtime does to free a session calls the device, and where that fails it ends the whole process (seen with
1.31: `cudaFreeHost`, error 700). So nothing is opened on a lost device, and what was open there is never freed.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from typing import Any
from weakref import WeakSet

from .devices import context_is_broken
from .providers import Rung


def keep_for_ever(thing: object) -> None:
    """Let an object never be freed, not even when the process ends."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(thing))


class LostDevices:
    """Which devices are lost, and the sessions that may not be freed then.

    Args:
        is_broken, keep: others in tests.
    """

    def __init__(
        self, is_broken: Callable[[Rung], bool] = context_is_broken, keep: Callable[[object], None] = keep_for_ever
    ) -> None:
        self._is_broken = is_broken
        self._keep = keep
        self._lock = threading.Lock()
        self._lost: set[tuple[str, int]] = set()
        self._stranded = False
        self._sessions: dict[tuple[str, int], WeakSet[Any]] = {}

    def __bool__(self) -> bool:
        """Whether sessions stand on a lost device: a new process may be able to use it."""
        return self._stranded

    def watch(self, session: Any, rung: Rung) -> None:
        """A session was opened on a rung."""
        with self._lock:
            self._sessions.setdefault(rung.memory, WeakSet()).add(session)

    def check(self, rung: Rung) -> bool:
        """Whether a rung's device is lost, the driver being asked; the host's memory is no device."""
        if rung.memory[0] == "cpu":
            return False
        with self._lock:
            if rung.memory not in self._lost and self._is_broken(rung):
                self._lost.add(rung.memory)
                for session in self._sessions.get(rung.memory, ()):
                    self._keep(session)
                    self._stranded = True
            return rung.memory in self._lost


LOST_DEVICES = LostDevices()
"""Of this process, whatever packs its models are from."""
