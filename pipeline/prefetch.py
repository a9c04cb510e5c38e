"""Work ahead of a consumer in threads, with a bound."""

from __future__ import annotations

import queue
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")

PATIENCE = 0.1
"""Seconds after which a maker that waits for room looks whether it was stopped."""


def prefetched(items: Iterator[T], depth: int) -> Generator[T, None, None]:
    """The same items in the same order, made by a thread at most `depth` ahead.

    An exception of the maker is raised where the item would have come. When the consumer stops early
    (closes this generator), the maker ends after the item at hand and the source is closed by its thread.
    """
    ready: queue.Queue[tuple[bool, T | BaseException | None]] = queue.Queue(depth)
    stop = threading.Event()

    def put(entry: tuple[bool, T | BaseException | None]) -> bool:
        while not stop.is_set():
            try:
                ready.put(entry, timeout=PATIENCE)
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
        finally:
            if isinstance(items, Generator):
                items.close()

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


def mapped(function: Callable[[T], R], items: Iterable[T], workers: int) -> Generator[R, None, None]:
    """function(item) of every item in order, several at a time in threads, at most `workers` ahead.

    One worker means no threads: each is made when it is asked for. An exception is raised where the result
    would have come; whoever stops early waits for those at hand only.
    """
    if workers <= 1:
        yield from map(function, items)
        return
    with ThreadPoolExecutor(workers, thread_name_prefix="frames") as pool:
        waiting: deque[Future[R]] = deque()
        try:
            for item in items:
                waiting.append(pool.submit(function, item))
                if len(waiting) > workers:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()
