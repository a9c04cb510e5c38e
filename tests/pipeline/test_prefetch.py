"""Working ahead in a thread."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from pipeline.prefetch import prefetched


def test_same_items_in_the_same_order() -> None:
    assert list(prefetched(iter(range(100)), 3)) == list(range(100))


def test_never_further_ahead_than_the_bound() -> None:
    made = 0

    def items() -> Iterator[int]:
        nonlocal made
        for item in range(50):
            made += 1
            yield item

    for taken, _ in enumerate(prefetched(items(), 4), 1):
        assert made <= taken + 4 + 1  # one more may be in the maker's hands


def test_errors_come_where_the_item_would() -> None:
    def items() -> Iterator[int]:
        yield 1
        raise ValueError("broken")

    stream = prefetched(items(), 4)
    assert next(stream) == 1
    with pytest.raises(ValueError, match="broken"):
        next(stream)


def test_closing_early_ends_the_thread_and_the_source() -> None:
    closed = threading.Event()

    def items() -> Iterator[int]:
        try:
            yield from range(10**9)
        finally:
            closed.set()

    stream = prefetched(items(), 2)
    assert next(stream) == 0
    stream.close()
    assert closed.is_set()
    assert not [thread for thread in threading.enumerate() if thread.name == "prefetch"]
