"""Placements: never overlapping, bounded, reproducible."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.graphs import bfc
from pipeline.graphs.arena import ALIGNMENT, Buffer, by_size, by_time, lower_bound, picture, search, total

buffers = st.lists(st.tuples(st.integers(1, 5000), st.integers(0, 12), st.integers(0, 12)), max_size=14).map(
    lambda rows: [Buffer(f"b{i}", size, min(a, b), max(a, b)) for i, (size, a, b) in enumerate(rows)]
)


@given(buffers)
@settings(derandomize=True, deadline=None, max_examples=60)
def test_no_two_alive_together_overlap(listed):
    for placement in (by_time(listed), by_size(listed), search(listed, rounds=30)):
        spans = list(zip(placement.buffers, placement.offsets, strict=True))
        for i, (a, x) in enumerate(spans):
            assert x % ALIGNMENT == 0
            for b, y in spans[:i]:
                assert not a.meets(b) or x + a.size <= y or y + b.size <= x
        assert lower_bound(listed) <= placement.peak <= total(listed)


@given(buffers)
@settings(derandomize=True, deadline=None, max_examples=30)
def test_search_is_no_worse_and_reproducible(listed):
    found = search(listed, rounds=30)
    assert found.peak <= min(by_time(listed).peak, by_size(listed).peak)
    assert found == search(listed, rounds=30)


def test_search_finds_what_first_fit_misses():
    rows = [(192, 1, 4), (384, 3, 5), (384, 0, 3), (384, 2, 5), (192, 2, 2), (320, 0, 2), (192, 6, 10)]
    listed = [Buffer(f"b{i}", *row) for i, row in enumerate(rows)]
    assert search(listed).peak == lower_bound(listed) == 1472
    assert min(by_time(listed).peak, by_size(listed).peak) > 1472


def test_bytes_at_each_step():
    listed = [Buffer("a", 64, 0, 1), Buffer("b", 65, 1, 2), Buffer("c", 1, 3, 3)]
    assert lower_bound(listed) == 64 + 128
    assert total(listed) == 64 + 128 + 64


def test_picture_shows_free_and_taken():
    text = picture(by_time([Buffer("a", 2**20, 0, 1), Buffer("b", 2**20, 1, 3)]), rows=2)
    head, top, bottom, _ = text.splitlines()
    assert head == "2.0 MiB"
    assert (top, bottom) == (".BBB".replace("B", top[1]), "AA..".replace("A", bottom[0]))
    assert picture(by_time([])) == "(empty)"


def test_arena_takes_a_whole_chunk_below_twice_the_size():
    arena = bfc.Arena(first_region=4096)
    whole = arena.take(4096)
    arena.free(whole)
    assert arena.take(2560).size == 4096  # not split, as 4096 < 2 * 2560
    assert arena.touched == 4096


def test_arena_joins_free_neighbours_and_grows_by_doubling():
    arena = bfc.Arena(first_region=4096)
    a, b = arena.take(1024), arena.take(1024)
    arena.free(a)
    arena.free(b)
    assert arena.take(4096).region == 0
    assert arena.take(5000).size == 8192
    assert arena.touched == 4096 + 5120
