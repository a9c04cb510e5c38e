"""The contract of an artifact store, for each store."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from workers.artifacts import Claim
from workers.artifacts.redis import CHUNK_BYTES
from workers.errors import ArtifactMissingError, ArtifactsTooLargeError, JobReleasedError

from .conftest import Bench

HOUR = 3600.0


def missing(bench: Bench, key: str) -> bool:
    """Both `has` and `get` must say so."""
    gone = bench.store.has([key]) == [False]
    if gone:
        with pytest.raises(ArtifactMissingError) as caught:
            bench.store.get(key)
        assert caught.value.key == key
    return gone


@pytest.mark.parametrize(
    "data",
    [b"", b"\0\r\n$-1\xff" * 3, bytes(range(256)) * 100],
    ids=["empty", "protocol bytes", "all bytes"],
)
def test_bytes_come_back_as_they_were_put(bench: Bench, data: bytes) -> None:
    bench.store.put("frames:a", data, job="j1", lifetime=HOUR)
    assert bench.store.get("frames:a") == data


@pytest.mark.parametrize("size", [CHUNK_BYTES, CHUNK_BYTES + 1, 2 * CHUNK_BYTES, 2 * CHUNK_BYTES + 5])
def test_sizes_around_a_chunk(bench: Bench, size: int) -> None:
    data = bytes(range(251)) * (size // 251 + 1)
    bench.store.put("film:a", data[:size], job="j1", lifetime=HOUR)
    assert bench.store.get("film:a") == data[:size]
    assert bench.store.usage("j1") == {"film": size}


@pytest.mark.parametrize("wrap", [bytearray, memoryview])
def test_other_kinds_of_bytes_are_copied(bench: Bench, wrap: Callable[[bytes], bytearray | memoryview]) -> None:
    given = wrap(b"frame")
    bench.store.put("frames:a", given, job="j1", lifetime=HOUR)
    if isinstance(given, bytearray):
        given[0] = 0
    assert bench.store.get("frames:a") == b"frame"


def test_what_was_never_put_is_missing(bench: Bench) -> None:
    assert missing(bench, "frames:a")


def test_has_answers_in_order(bench: Bench) -> None:
    bench.store.put("frames:b", b"1", job="j1", lifetime=HOUR)
    assert bench.store.has(["frames:a", "frames:b", "frames:c"]) == [False, True, False]
    assert bench.store.has([]) == []


def test_a_second_put_keeps_the_first_bytes(bench: Bench) -> None:
    bench.store.put("frames:a", b"first", job="j1", lifetime=HOUR)
    bench.store.put("frames:a", b"second, longer", job="j1", lifetime=HOUR)
    assert bench.store.get("frames:a") == b"first"
    assert bench.store.usage("j1") == {"frames": 5}


def test_a_lost_artifact_can_be_put_again(bench: Bench) -> None:
    bench.store.put("frames:a", b"first", job="j1", lifetime=HOUR)
    bench.lose("frames:a")
    assert missing(bench, "frames:a")
    bench.store.put("frames:a", b"again, longer", job="j1", lifetime=HOUR)
    assert bench.store.get("frames:a") == b"again, longer"
    assert bench.store.usage("j1") == {"frames": 13}


def test_a_lifetime_ends(bench: Bench) -> None:
    bench.store.put("frames:a", b"1", job="j1", lifetime=10)
    bench.sleep(9)
    assert bench.store.has(["frames:a"]) == [True]
    bench.sleep(2)
    assert missing(bench, "frames:a")
    assert bench.store.usage("j1") == {}


def test_the_longest_lifetime_counts(bench: Bench) -> None:
    bench.store.put("frames:a", b"1", job="j1", lifetime=100)
    bench.store.put("frames:a", b"1", job="j1", lifetime=10)
    bench.sleep(50)
    assert bench.store.has(["frames:a"]) == [True]
    bench.store.hold("frames:a", job="j2", lifetime=100)
    bench.sleep(80)
    assert bench.store.has(["frames:a"]) == [True]
    bench.sleep(30)
    assert missing(bench, "frames:a")


def test_a_shared_artifact_stays_until_nobody_holds_it(bench: Bench) -> None:
    bench.store.put("appearance:a", b"face", job="j1", lifetime=HOUR)
    bench.store.hold("appearance:a", job="j2", lifetime=HOUR)
    bench.store.release("j1")
    assert bench.store.get("appearance:a") == b"face"
    bench.store.release("j2")
    assert missing(bench, "appearance:a")


def test_a_hold_whose_lifetime_ended_does_not_count(bench: Bench) -> None:
    bench.store.put("appearance:a", b"face", job="dead", lifetime=10)
    bench.store.hold("appearance:a", job="j2", lifetime=100)
    bench.sleep(20)
    bench.store.drop("j2", ["appearance:a"])
    assert missing(bench, "appearance:a")


def test_what_is_missing_cannot_be_held(bench: Bench) -> None:
    with pytest.raises(ArtifactMissingError):
        bench.store.hold("appearance:a", job="j1", lifetime=HOUR)
    assert bench.store.usage("j1") == {}


def test_drop_gives_up_some(bench: Bench) -> None:
    for key in ("frames:a", "frames:b", "film:c"):
        bench.store.put(key, b"1234", job="j1", lifetime=HOUR)
    bench.store.drop("j1", ["frames:a", "frames:never"])
    assert bench.store.has(["frames:a", "frames:b", "film:c"]) == [False, True, True]
    assert bench.store.usage("j1") == {"frames": 4, "film": 4}
    bench.store.drop("j1", ["frames:b"])
    bench.store.drop("j1", ["frames:b", "film:c"])
    assert bench.store.usage("j1") == {}


def test_drop_of_another_jobs_artifact_does_nothing(bench: Bench) -> None:
    bench.store.put("frames:a", b"1", job="j1", lifetime=HOUR)
    bench.store.drop("j2", ["frames:a"])
    assert bench.store.get("frames:a") == b"1"


def test_release_keeps_kinds_and_a_second_release_forgets_them(bench: Bench) -> None:
    bench.store.put("frames:a", b"1", job="j1", lifetime=HOUR)
    bench.store.put("film:a", b"film", job="j1", lifetime=HOUR)
    bench.store.release("j1", keep=["film"])
    assert bench.store.has(["frames:a", "film:a"]) == [False, True]
    bench.store.release("j1")
    assert missing(bench, "film:a")


def test_a_released_job_takes_nothing_more(bench: Bench) -> None:
    bench.store.put("appearance:a", b"1", job="j2", lifetime=HOUR)
    bench.store.release("j1")
    for size in (1, CHUNK_BYTES + 1):
        with pytest.raises(JobReleasedError, match="job j1 is over"):
            bench.store.put("frames:late", bytes(size), job="j1", lifetime=HOUR)
    with pytest.raises(JobReleasedError):
        bench.store.hold("appearance:a", job="j1", lifetime=HOUR)
    assert missing(bench, "frames:late")
    bench.store.put("frames:a", b"1", job="j2", lifetime=HOUR)


def test_usage_by_kind(bench: Bench) -> None:
    bench.store.put("frames:a", bytes(10), job="j1", lifetime=HOUR)
    bench.store.put("frames:b", bytes(20), job="j1", lifetime=HOUR)
    bench.store.put("film:a", bytes(5), job="j1", lifetime=HOUR)
    bench.store.hold("film:a", job="j2", lifetime=HOUR)
    assert bench.store.usage("j1") == {"frames": 30, "film": 5}
    assert bench.store.usage("j2") == {"film": 5}
    assert bench.store.usage("j3") == {}


@pytest.mark.parametrize("size", [60, CHUNK_BYTES + 60])
def test_a_job_has_a_limit(make_bench: Callable[[int], Bench], size: int) -> None:
    bench = make_bench(size + 40)
    bench.store.put("frames:a", bytes(size), job="j1", lifetime=HOUR)
    bench.store.put("frames:b", bytes(40), job="j1", lifetime=HOUR)
    bench.store.put("frames:a", bytes(size), job="j1", lifetime=HOUR)
    with pytest.raises(ArtifactsTooLargeError) as caught:
        bench.store.put("frames:c", b"1", job="j1", lifetime=HOUR)
    assert (caught.value.job, caught.value.limit) == ("j1", size + 40)
    with pytest.raises(ArtifactsTooLargeError):
        bench.store.put("film:d", bytes(size + 41), job="j2", lifetime=HOUR)
    assert bench.store.has(["frames:c", "film:d"]) == [False, False]
    bench.store.put("frames:c", b"1", job="j2", lifetime=HOUR)
    with pytest.raises(ArtifactsTooLargeError):
        bench.store.hold("frames:c", job="j1", lifetime=HOUR)
    bench.store.drop("j1", ["frames:b"])
    bench.store.put("frames:d", bytes(40), job="j1", lifetime=HOUR)


def test_what_expired_or_was_lost_does_not_count_towards_the_limit(make_bench: Callable[[int], Bench]) -> None:
    bench = make_bench(100)
    bench.store.put("frames:a", bytes(60), job="j1", lifetime=10)
    bench.store.put("frames:b", bytes(40), job="j1", lifetime=HOUR)
    bench.sleep(11)
    bench.lose("frames:b")
    bench.store.put("frames:c", bytes(100), job="j1", lifetime=HOUR)
    assert bench.store.usage("j1") == {"frames": 100}


def test_one_claims_and_others_wait(bench: Bench) -> None:
    claim = bench.store.claim
    assert claim("appearance:a", "w1", 30) is Claim.YOURS
    assert claim("appearance:a", "w2", 30) is Claim.TAKEN
    assert claim("appearance:b", "w2", 30) is Claim.YOURS
    bench.store.put("appearance:a", b"face", job="j1", lifetime=HOUR)
    assert claim("appearance:a", "w2", 30) is Claim.MADE
    assert claim("appearance:a", "w1", 30) is Claim.MADE


def test_a_claim_of_the_dead_lapses(bench: Bench) -> None:
    assert bench.store.claim("appearance:a", "dead", 30) is Claim.YOURS
    bench.sleep(29)
    assert bench.store.claim("appearance:a", "w2", 30) is Claim.TAKEN
    bench.sleep(2)
    assert bench.store.claim("appearance:a", "w2", 30) is Claim.YOURS
    assert bench.store.claim("appearance:a", "dead", 30) is Claim.TAKEN


def test_its_owner_prolongs_a_claim(bench: Bench) -> None:
    assert bench.store.claim("appearance:a", "w1", 30) is Claim.YOURS
    bench.sleep(20)
    assert bench.store.claim("appearance:a", "w1", 30) is Claim.YOURS
    bench.sleep(20)
    assert bench.store.claim("appearance:a", "w2", 30) is Claim.TAKEN


def test_only_its_owner_gives_a_claim_up(bench: Bench) -> None:
    bench.store.claim("appearance:a", "w1", 30)
    bench.store.unclaim("appearance:a", "w2")
    assert bench.store.claim("appearance:a", "w2", 30) is Claim.TAKEN
    bench.store.unclaim("appearance:a", "w1")
    assert bench.store.claim("appearance:a", "w2", 30) is Claim.YOURS


def test_a_lost_artifact_may_be_claimed_again(bench: Bench) -> None:
    bench.store.claim("appearance:a", "w1", 30)
    bench.store.put("appearance:a", b"face", job="j1", lifetime=HOUR)
    bench.lose("appearance:a")
    assert bench.store.claim("appearance:a", "w2", 30) is Claim.YOURS


def test_names_are_checked(bench: Bench) -> None:
    for key in ("", "frames", ":a", "frames:", "frames:a b", "frames:a\n", "Frames:a"):
        with pytest.raises(ValueError, match="is not kind:name"):
            bench.store.get(key)
    with pytest.raises(ValueError, match="job id"):
        bench.store.put("frames:a", b"", job="a:b", lifetime=HOUR)
    for lifetime in (0, -1, float("nan"), float("inf")):
        with pytest.raises(ValueError, match="lifetime"):
            bench.store.put("frames:a", b"", job="j1", lifetime=lifetime)
    assert bench.store.has(["frames:a"]) == [False]


def test_threads_share_a_store(bench: Bench) -> None:
    def work(number: int) -> None:
        for step in range(20):
            key = f"frames:{number}-{step}"
            bench.store.put(key, key.encode() * 50, job=f"j{number % 2}", lifetime=HOUR)
            assert bench.store.get(key) == key.encode() * 50
            if step % 2:
                bench.store.drop(f"j{number % 2}", [key])

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))
    left = [f"frames:{number}-{step}" for number in range(0, 8, 2) for step in range(0, 20, 2)]
    assert bench.store.usage("j0") == {"frames": sum(50 * len(key) for key in left)}
    assert all(bench.store.has(left))


def test_a_late_task_leaves_nothing_behind(bench: Bench) -> None:
    """Whatever the order of put and release, the end is the same."""

    def put(number: int) -> None:
        try:
            bench.store.put(f"frames:{number}", bytes(1000), job="j1", lifetime=HOUR)
        except JobReleasedError:
            return

    with ThreadPoolExecutor(8) as pool:
        puts = [pool.submit(put, number) for number in range(64)]
        pool.submit(bench.store.release, "j1").result()
        for done in puts:
            done.result()
    assert bench.store.usage("j1") == {}
    assert bench.store.has([f"frames:{number}" for number in range(64)]) == [False] * 64
