"""Both stores behind one face, with a clock that tests move."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from tests.redis_server import RedisServer
from workers.artifacts import ArtifactStore, MemoryStore, RedisStore


@dataclass
class Bench:
    """A store; `sleep` lets seconds pass for it, in no time. `lose` deletes an artifact behind its back."""

    store: ArtifactStore
    sleep: Callable[[float], None]
    lose: Callable[[str], None]


def memory_bench(job_limit: int) -> Bench:
    now = [1000.0]
    store = MemoryStore(job_limit, clock=lambda: now[0])

    def sleep(seconds: float) -> None:
        now[0] += seconds

    return Bench(store, sleep, lambda key: store._artifacts.__delitem__(key))


def redis_bench(server: RedisServer, job_limit: int) -> Bench:
    store = RedisStore(server.address, job_limit)
    client = server.client()

    def sleep(seconds: float) -> None:
        """Every deadline in the server comes nearer."""
        shift = round(seconds * 1000)
        for name in client.scan_iter():
            if client.type(name) == b"zset":
                for member, score in client.zrange(name, 0, -1, withscores=True):
                    client.zadd(name, {member: score - shift})
            left = client.pttl(name) - shift
            if left > 0:
                client.pexpire(name, left)
            else:
                client.delete(name)

    def lose(key: str) -> None:
        assert client.delete(f"{store.namespace}:artifact:{key}") == 1

    return Bench(store, sleep, lose)


@pytest.fixture(params=["memory", "redis"])
def make_bench(request: pytest.FixtureRequest) -> Callable[[int], Bench]:
    """Job limit -> a bench of each store in turn."""
    if request.param == "memory":
        return memory_bench
    server: RedisServer = request.getfixturevalue("redis_server")
    return lambda job_limit: redis_bench(server, job_limit)


@pytest.fixture
def bench(make_bench: Callable[[int], Bench]) -> Bench:
    return make_bench(1 << 30)
