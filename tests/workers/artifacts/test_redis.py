"""What only the Redis store has: chunks, lifetimes on every key, servers that fail, processes that die."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from collections.abc import Callable, Sequence
from multiprocessing.synchronize import Barrier, Event
from typing import Any

import pytest
import redis

from tests.redis_server import RedisServer
from workers.artifacts import Claim, RedisStore
from workers.artifacts.redis import CHUNK_BYTES, UPLOAD_LIFETIME
from workers.connections import RedisServer as Address
from workers.errors import (
    ArtifactMissingError,
    ArtifactsTooLargeError,
    FleetFullError,
    FleetUnreachableError,
    JobReleasedError,
)

HOUR = 3600.0
LARGE = bytes(range(256)) * (CHUNK_BYTES // 256) * 2 + b"end"

spawn = multiprocessing.get_context("spawn")


@pytest.fixture
def store(redis_server: RedisServer) -> RedisStore:
    return RedisStore(redis_server.address)


def names(store: RedisStore) -> list[str]:
    return sorted(name.decode() for name in store.client.scan_iter())


def without_lifetime(store: RedisStore) -> list[bytes]:
    return [name for name in store.client.scan_iter() if store.client.pttl(name) < 0]


def test_a_large_value_lies_in_chunks(store: RedisStore) -> None:
    store.put("film:a", LARGE, job="j1", lifetime=HOUR)
    sizes = [store.client.strlen(name) for name in names(store) if name.startswith("talkreel:chunk:")]
    assert sizes == [CHUNK_BYTES, CHUNK_BYTES, 3]
    assert store.client.strlen("talkreel:artifact:film:a") < 100


def test_a_lost_chunk_is_a_missing_artifact(store: RedisStore) -> None:
    store.put("film:a", LARGE, job="j1", lifetime=HOUR)
    store.client.delete(next(name for name in names(store) if name.endswith(":1")))
    assert store.has(["film:a"]) == [False]
    assert store.claim("film:a", "w1", 30) is Claim.YOURS
    with pytest.raises(ArtifactMissingError):
        store.hold("film:a", job="j2", lifetime=HOUR)
    with pytest.raises(ArtifactMissingError):
        store.get("film:a")
    store.put("film:a", LARGE, job="j1", lifetime=HOUR)
    assert store.get("film:a") == LARGE


@pytest.mark.parametrize("data", [b"frames" * 100, LARGE], ids=["small", "large"])
def test_damaged_bytes_are_a_missing_artifact(store: RedisStore, data: bytes) -> None:
    store.put("frames:a", data, job="j1", lifetime=HOUR)
    store.hold("frames:a", job="j2", lifetime=HOUR)
    holder = next(name for name in names(store) if ":chunk:" in name or (":artifact:" in name and data != LARGE))
    store.client.setrange(holder, 100, b"X")
    with pytest.raises(ArtifactMissingError):
        store.get("frames:a")
    assert store.has(["frames:a"]) == [False]
    store.put("frames:a", data, job="j1", lifetime=HOUR)
    store.release("j1")
    assert store.get("frames:a") == data, "j2 held it before the damage and still does"


def test_every_key_has_a_lifetime_and_nothing_stays(store: RedisStore) -> None:
    for number in range(3):
        store.put(f"frames:{number}", b"1", job="j1", lifetime=HOUR)
    store.put("film:a", LARGE, job="j1", lifetime=2 * HOUR)
    store.hold("film:a", job="j2", lifetime=HOUR)
    store.claim("appearance:a", "w1", 30)
    assert without_lifetime(store) == []
    store.drop("j1", ["frames:0"])
    store.usage("j1")
    assert without_lifetime(store) == []
    store.release("j1")
    store.release("j2")
    store.unclaim("appearance:a", "w1")
    assert names(store) == ["talkreel:released:j1", "talkreel:released:j2"]
    assert without_lifetime(store) == []


def test_chunks_live_as_long_as_their_manifest(store: RedisStore) -> None:
    store.put("film:a", LARGE, job="j1", lifetime=HOUR)
    store.hold("film:a", job="j2", lifetime=3 * HOUR)
    lives = [store.client.pttl(name) for name in names(store) if ":chunk:" in name or ":artifact:" in name]
    assert len(lives) == 4
    assert min(lives) > 2.9 * HOUR * 1000
    assert store.client.pttl("talkreel:job:j1") < 1.1 * HOUR * 1000


@pytest.mark.parametrize("refused_by", ["limit", "release"])
def test_a_refused_large_put_leaves_no_chunks(
    store: RedisStore, monkeypatch: pytest.MonkeyPatch, refused_by: str
) -> None:
    """Refused only after its upload, since another task of the job was quicker."""
    store.job_limit = len(LARGE) + 10
    upload = store._upload

    def slow_upload(*arguments: object) -> None:
        upload(*arguments)  # type: ignore[arg-type]
        if refused_by == "limit":
            store.put("frames:b", bytes(100), job="j1", lifetime=HOUR)
        else:
            store.release("j1")

    monkeypatch.setattr(store, "_upload", slow_upload)
    with pytest.raises((ArtifactsTooLargeError, JobReleasedError)):
        store.put("film:a", LARGE, job="j1", lifetime=HOUR)
    assert not [name for name in names(store) if ":chunk:" in name or "film" in name]


def test_a_refused_put_spares_another_jobs_chunks(store: RedisStore, monkeypatch: pytest.MonkeyPatch) -> None:
    upload = store._upload

    def slow_upload(*arguments: object) -> None:
        monkeypatch.setattr(store, "_upload", upload)
        upload(*arguments)  # type: ignore[arg-type]
        store.put("film:a", LARGE, job="j2", lifetime=HOUR)
        store.release("j1")

    monkeypatch.setattr(store, "_upload", slow_upload)
    with pytest.raises(JobReleasedError):
        store.put("film:a", LARGE, job="j1", lifetime=HOUR)
    assert store.get("film:a") == LARGE


def test_chunks_that_vanish_during_the_upload_are_sent_again(
    store: RedisStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    upload = store._upload
    tries = []

    def losing_upload(*arguments: object) -> None:
        upload(*arguments)  # type: ignore[arg-type]
        tries.append(1)
        if len(tries) == 1:
            store.client.delete(next(name for name in names(store) if ":chunk:" in name))

    monkeypatch.setattr(store, "_upload", losing_upload)
    store.put("film:a", LARGE, job="j1", lifetime=HOUR)
    assert len(tries) == 2
    assert store.get("film:a") == LARGE


def test_two_stores_of_other_namespaces_share_a_server(redis_server: RedisServer) -> None:
    one, two = (RedisStore(redis_server.address, namespace=name) for name in ("one", "two"))
    one.put("frames:a", b"1", job="j1", lifetime=HOUR)
    assert two.has(["frames:a"]) == [False]
    two.release("j1")
    assert one.get("frames:a") == b"1"


def fill(store: RedisStore, megabytes: int) -> None:
    for number in range(megabytes):
        store.put(f"frames:{number}", os.urandom(1 << 20), job="j1", lifetime=HOUR)


def test_a_full_server_says_so_and_can_be_emptied() -> None:
    with RedisServer(options={"maxmemory": "30mb"}) as server:
        store = RedisStore(server.address)
        store.put("frames:a", b"a", job="j2", lifetime=HOUR)
        with pytest.raises(FleetFullError, match=r"out of memory; .*maxmemory"):
            fill(store, 40)
        with pytest.raises(FleetFullError):
            store.put("film:large", os.urandom(2 * CHUNK_BYTES + CHUNK_BYTES // 2), job="j2", lifetime=HOUR)
        assert store.get("frames:a") == b"a"
        store.drop("j2", ["frames:a"])
        store.release("j1")
        assert store.usage("j1") == {}
        store.put("frames:b", bytes(1 << 20), job="j2", lifetime=HOUR)
        assert without_lifetime(store) == []


def test_a_stopped_server_is_unreachable_and_comes_back() -> None:
    with RedisServer(persistent=True) as server:
        store = RedisStore(server.address)
        store.put("film:a", LARGE, job="j1", lifetime=HOUR)
        server.kill()
        with pytest.raises(FleetUnreachableError) as caught:
            store.get("film:a")
        assert "\n" not in str(caught.value)
        assert f"127.0.0.1:{server.port}" in str(caught.value)
        server.start()
        assert store.get("film:a") == LARGE
        server.restart(keep_data=False)
        assert store.has(["film:a"]) == [False]
        store.put("film:a", LARGE, job="j1", lifetime=HOUR)
        assert store.get("film:a") == LARGE


def test_a_broken_connection_is_tried_again(store: RedisStore) -> None:
    store.put("frames:a", b"1", job="j1", lifetime=HOUR)
    with store.server.client() as other:
        other.client_kill_filter(_type="normal", skipme=True)
    store.put("frames:b", b"2", job="j1", lifetime=HOUR)
    assert store.usage("j1") == {"frames": 2}


# Processes


def run_together(target: Callable[..., None], arguments: Sequence[tuple[Any, ...]]) -> None:
    """A process for each, begun at the same time; all must end well."""
    barrier = spawn.Barrier(len(arguments))
    workers = [spawn.Process(target=target, args=(barrier, *given)) for given in arguments]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(120)
    assert [worker.exitcode for worker in workers] == [0] * len(workers)


def compute_once(barrier: Barrier, address: Address, rounds: int) -> None:
    """What a task does for a shared artifact; counts its computations in Redis."""
    store = RedisStore(address)
    owner = str(os.getpid())
    for number in range(rounds):
        key = f"appearance:{number}"
        barrier.wait(60)
        while (claim := store.claim(key, owner, 30)) is not Claim.MADE:
            if claim is Claim.YOURS:
                store.client.incr(f"computed:{key}")
                store.put(key, b"face" * 1000, job="j1", lifetime=HOUR)
            time.sleep(0.001)
        assert store.get(key) == b"face" * 1000


def test_processes_compute_a_shared_artifact_once(store: RedisStore) -> None:
    run_together(compute_once, [(store.server, 10)] * 4)
    assert [store.client.get(f"computed:appearance:{number}") for number in range(10)] == [b"1"] * 10


def claim_and_hang(address: Address, claimed: Event) -> None:
    assert RedisStore(address).claim("appearance:a", "dead", 0.5) is Claim.YOURS
    claimed.set()
    time.sleep(60)


def test_the_claim_of_a_killed_process_lapses(store: RedisStore) -> None:
    claimed = spawn.Event()
    worker = spawn.Process(target=claim_and_hang, args=(store.server, claimed))
    worker.start()
    assert claimed.wait(30)
    os.kill(worker.pid or 0, signal.SIGKILL)
    worker.join(30)
    end = time.monotonic() + 30
    while store.claim("appearance:a", "w2", 30) is Claim.TAKEN:
        assert time.monotonic() < end
        time.sleep(0.05)
    assert store.claim("appearance:a", "w3", 30) is Claim.TAKEN


def upload_and_hang(address: Address, uploaded: Event) -> None:
    store = RedisStore(address)
    whole_upload = store._upload

    def upload(*arguments: object) -> None:
        whole_upload(*arguments)  # type: ignore[arg-type]
        uploaded.set()
        time.sleep(60)

    store._upload = upload  # type: ignore[method-assign,assignment]
    store.put("film:a", LARGE, job="j1", lifetime=HOUR)


def test_a_writer_killed_before_its_manifest_leaves_nothing_to_read(store: RedisStore) -> None:
    uploaded = spawn.Event()
    worker = spawn.Process(target=upload_and_hang, args=(store.server, uploaded))
    worker.start()
    assert uploaded.wait(30)
    os.kill(worker.pid or 0, signal.SIGKILL)
    worker.join(30)
    assert store.has(["film:a"]) == [False]
    lives = [store.client.pttl(name) for name in names(store)]
    assert len(lives) == 3
    assert 0 < min(lives) <= max(lives) <= UPLOAD_LIFETIME * 1000
    store.put("film:a", LARGE, job="j1", lifetime=HOUR)
    assert store.get("film:a") == LARGE


def read_many(store: RedisStore, number: int) -> None:
    for step in range(200):
        store.put(f"frames:{number}-{step}", f"{number}-{step}".encode(), job="j1", lifetime=HOUR)
        assert store.get(f"frames:{number}-{step}") == f"{number}-{step}".encode()


def use_and_fork(barrier: Barrier, address: Address) -> None:
    """A store used before the fork, by parent and children after it. Forked from a process without threads."""
    store = RedisStore(address)
    store.put("frames:a", b"1", job="j1", lifetime=HOUR)
    fork = multiprocessing.get_context("fork")
    workers = [fork.Process(target=read_many, args=(store, number)) for number in range(4)]
    for worker in workers:
        worker.start()
    read_many(store, 9)
    for worker in workers:
        worker.join(60)
    assert [worker.exitcode for worker in workers] == [0] * 4


def test_a_store_outlives_a_fork(store: RedisStore) -> None:
    run_together(use_and_fork, [(store.server,)])
    assert store.has(["frames:a", "frames:0-199", "frames:9-0"]) == [True] * 3


def race(barrier: Barrier, address: Address, number: int) -> None:
    store = RedisStore(address)
    barrier.wait(60)
    for step in range(6):
        try:
            store.put(f"film:{step}", LARGE, job=f"j{number}", lifetime=HOUR)
            assert store.get(f"film:{step}") == LARGE
        finally:
            store.drop(f"j{number}", [f"film:{step}"])


def test_writers_and_deleters_of_one_key_never_show_half_a_value(store: RedisStore) -> None:
    """Who has put it holds it, so another's drop takes nothing from him."""
    run_together(race, [(store.server, number) for number in range(3)])
    assert without_lifetime(store) == []
    assert [store.usage(f"j{number}") for number in range(3)] == [{}] * 3
    assert not [name for name in names(store) if ":artifact:" in name or ":holders:" in name]


# TLS and logins


def test_all_of_it_over_tls_with_a_user(tls_redis: RedisServer) -> None:
    store = RedisStore(tls_redis.address)
    store.put("film:a", LARGE, job="j1", lifetime=HOUR)
    assert store.get("film:a") == LARGE
    store.release("j1")
    assert store.has(["film:a"]) == [False]


def test_an_error_of_another_kind_is_not_hidden(store: RedisStore) -> None:
    store.client.lpush("talkreel:job:j1", "not a hash")
    with pytest.raises(redis.exceptions.ResponseError, match="WRONGTYPE"):
        store.usage("j1")
