"""What a worker process keeps of the artifacts that it has read, and for how long."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.workers.fleet import wait_until
from workers.artifacts import MemoryStore
from workers.codec import encode
from workers.errors import ArtifactMissingError
from workers.value_cache import ValueCache


class CountingStore(MemoryStore):
    """Counts what is read."""

    def __init__(self) -> None:
        super().__init__()
        self.read: list[str] = []

    def get(self, key: str) -> bytes:
        self.read.append(key)
        return super().get(key)

    def add(self, key: str, value: Any) -> int:
        data = encode(value)
        self.put(key, data, job="job", lifetime=60)
        return len(data)


@pytest.fixture
def store() -> CountingStore:
    return CountingStore()


def test_a_value_is_read_once(store: CountingStore) -> None:
    store.add("motion:a", np.arange(9))
    cache = ValueCache(store)
    first, again = (cache.get("motion:a", np.ndarray) for _ in range(2))
    assert first is again
    np.testing.assert_array_equal(first, np.arange(9))
    assert store.read == ["motion:a"]


def test_what_was_deleted_is_missing_though_it_was_kept(store: CountingStore) -> None:
    store.add("motion:a", [1])
    cache = ValueCache(store)
    cache.get("motion:a", list)
    store.release("job")
    for _ in range(2):
        with pytest.raises(ArtifactMissingError):
            cache.get("motion:a", list)
    assert "motion:a" not in cache


def test_what_was_lost_and_made_again_is_read_again(store: CountingStore) -> None:
    store.add("motion:a", [1])
    cache = ValueCache(store)
    cache.get("motion:a", list)
    store.drop("job", ["motion:a"])
    with pytest.raises(ArtifactMissingError):
        cache.get("motion:a", list)
    store.add("motion:a", [1])
    assert cache.get("motion:a", list) == [1]
    assert store.read == ["motion:a"] * 2


def test_the_values_used_last_stay(store: CountingStore) -> None:
    sizes = [store.add(f"motion:{n}", np.random.default_rng(n).bytes(1000)) for n in range(3)]
    cache = ValueCache(store, limit=2 * max(sizes))
    for n in (0, 1, 0, 2):
        cache.get(f"motion:{n}", bytes)
    assert [f"motion:{n}" in cache for n in range(3)] == [True, False, True]


def test_a_value_above_the_limit_is_not_kept(store: CountingStore) -> None:
    size = store.add("motion:a", np.random.default_rng(0).bytes(1000))
    cache = ValueCache(store, limit=size - 1)
    assert len(cache.get("motion:a", bytes)) == 1000
    assert "motion:a" not in cache


def test_what_nobody_asks_for_is_dropped(store: CountingStore) -> None:
    store.add("motion:a", [1])
    cache = ValueCache(store, idle=0.05)
    cache.get("motion:a", list)
    wait_until(lambda: "motion:a" not in cache, 30, "it is kept for ever")
    assert cache.get("motion:a", list) == [1]
    assert store.read == ["motion:a"] * 2
