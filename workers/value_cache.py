"""Values that a worker process keeps decoded, since every chunk of a film needs them again: appearance, plan, motion.

Without it a portrait's features (some 30 MB) would be read from Redis and decoded for every two seconds of film.
The store stays the only truth: a value is handed out only while its artifact is still there, and what is not used
for a moment is dropped, so that no portrait outlives a `forget` in a worker's memory.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any, TypeVar

from .artifacts import ArtifactStore
from .codec import decode
from .errors import ArtifactMissingError

T = TypeVar("T")

LIMIT = 128 << 20
"""Stored bytes of what is kept, at most; the values that were used last stay."""

IDLE = 10.0
"""Seconds after which a value that nobody asked for is dropped."""


@dataclass
class _Kept:
    value: Any
    size: int
    used: float


class ValueCache:
    """Decoded artifacts of one process, by key. Their arrays are read-only, so steps may share them.

    Args:
        store: where they are read. limit, idle: see `LIMIT` and `IDLE`.
    """

    def __init__(self, store: ArtifactStore, limit: int = LIMIT, idle: float = IDLE) -> None:
        self._store = store
        self._limit = limit
        self._idle = idle
        self._kept: OrderedDict[str, _Kept] = OrderedDict()
        self._lock = threading.Lock()
        self._timer: threading.Timer | None = None

    def __contains__(self, key: str) -> bool:
        return key in self._kept

    def get(self, key: str, kind: type[T]) -> T:
        """The value of an artifact. Raises what `ArtifactStore.get` and `decode` raise, also where it was kept."""
        with self._lock:
            kept = self._kept.get(key)
        if kept is not None:
            there = self._store.has([key])[0]
            with self._lock:
                if not there:
                    self._kept.pop(key, None)
                    raise ArtifactMissingError(key)
                self._keep(key, kept)
            found: T = kept.value
            return found
        data = self._store.get(key)
        value = decode(data, kind)
        with self._lock:
            self._keep(key, _Kept(value, len(data), 0.0))
        return value

    def _keep(self, key: str, kept: _Kept) -> None:
        if kept.size > self._limit:
            return
        kept.used = time.monotonic()
        self._kept[key] = kept
        self._kept.move_to_end(key)
        while sum(item.size for item in self._kept.values()) > self._limit:
            self._kept.popitem(last=False)
        if self._timer is None:
            self._start_timer()

    def _start_timer(self) -> None:
        self._timer = threading.Timer(self._idle / 2, self._drop_idle)
        self._timer.daemon = True
        self._timer.start()

    def _drop_idle(self) -> None:
        with self._lock:
            old = time.monotonic() - self._idle
            for key in [key for key, kept in self._kept.items() if kept.used < old]:
                del self._kept[key]
            self._timer = None
            if self._kept:
                self._start_timer()
