"""Working ahead in a thread."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from pipeline.prefetch import mapped, prefetched


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


@pytest.mark.parametrize("workers", [1, 2, 5])
def test_mapped_keeps_the_order(workers: int) -> None:
    assert list(mapped(lambda x: x * x, range(40), workers)) == [x * x for x in range(40)]


def test_mapped_works_side_by_side() -> None:
    both = threading.Barrier(2, timeout=30)
    assert list(mapped(lambda x: both.wait() >= 0, range(4), 2)) == [True] * 4


def test_mapped_is_never_further_ahead_than_its_workers() -> None:
    taken: list[int] = []

    def items() -> Iterator[int]:
        for item in range(30):
            taken.append(item)
            yield item

    for done, _ in enumerate(mapped(lambda x: x, items(), 3), 1):
        assert len(taken) <= done + 3


def test_mapped_raises_where_the_result_would_come() -> None:
    stream = mapped(lambda x: 1 // (3 - x), range(9), 2)
    assert [next(stream) for _ in range(3)] == [0, 0, 1]
    with pytest.raises(ZeroDivisionError):
        next(stream)


def test_mapped_lazily_with_one_worker() -> None:
    made: list[int] = []
    stream = mapped(made.append, range(5), 1)
    next(stream)
    assert made == [0]
    stream.close()
