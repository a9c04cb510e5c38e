"""Work ahead of a consumer in a thread, with a bound."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")


def prefetched(items: Iterable[T], depth: int) -> Iterator[T]:
    """The same items in the same order, made by a thread at most `depth` ahead.

    An exception of the maker is raised where the item would have come. A consumer that stops early
    (closes this generator) stops the maker after the item at hand; nothing runs on behind.
    """
    ready: queue.Queue[tuple[bool, T | BaseException | None]] = queue.Queue(depth)
    stop = threading.Event()

    def put(entry: tuple[bool, T | BaseException | None]) -> bool:
        while not stop.is_set():
            try:
                ready.put(entry, timeout=0.1)
                return True
            except queue.Full:
                continue
        return False

    def make() -> None:
        try:
            for item in items:
                if not put((True, item)):
                    return
            put((False, None))
        except BaseException as error:
            put((False, error))

    maker = threading.Thread(target=make, name="prefetch", daemon=True)
    maker.start()
    try:
        while True:
            more, item = ready.get()
            if not more:
                if isinstance(item, BaseException):
                    raise item
                return
            yield item  # type: ignore[misc]
    finally:
        stop.set()
        maker.join()
