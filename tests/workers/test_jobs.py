"""The state of jobs: who may change what, and when."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from pipeline.errors import NoFaceError
from tests.redis_server import RedisServer
from tests.workers.orders import ELSEWHERE, done, let_pass, order, status
from workers.connections import RedisServer as Address
from workers.errors import FleetUnreachableError, JobNotFoundError
from workers.jobs import LEASE, Jobs
from workers.owners import is_dead, owner_name, worker_of


@pytest.fixture
def jobs(redis_server: RedisServer) -> Jobs:
    made = Jobs(redis_server.address)
    made.create(order())
    return made


def test_a_step_is_sent_once_however_many_try(jobs: Jobs) -> None:
    with ThreadPoolExecutor(8) as threads:
        assert sum(threads.map(lambda _: jobs.send("job", "plan"), range(50))) == 1


def test_a_step_is_begun_by_one_and_ended_by_the_same(jobs: Jobs) -> None:
    jobs.send("job", "plan")
    with ThreadPoolExecutor(8) as threads:
        verdicts = list(threads.map(lambda n: jobs.begin("job", "plan", f"{ELSEWHERE}{n}"), range(20)))
    assert verdicts.count("go") == 1
    assert verdicts.count("busy") == 19
    assert not jobs.finish("job", "plan", "somebody", {})
    assert jobs.finish("job", "plan", f"{ELSEWHERE}{verdicts.index('go')}", {"segments": [], "empty": {}})
    assert jobs.begin("job", "plan", "late") == "done"
    assert jobs.view("job").result("plan") == {"segments": [], "empty": {}}


def test_a_step_that_went_on_since_it_was_looked_at_is_not_sent_again(jobs: Jobs) -> None:
    """Or it would be taken from whom Celery gave it meanwhile, and count as begun in vain."""
    jobs.send("job", "plan")
    jobs.begin("job", "plan", ELSEWHERE)
    let_pass(jobs, "job", "plan", LEASE + 1)
    lapsed = jobs.view("job").steps["plan"]
    assert jobs.begin("job", "plan", "second") == "go"
    assert not jobs.send("job", "plan", was=lapsed)
    assert jobs.beat("job", "plan", "second") == "running"
    let_pass(jobs, "job", "plan", LEASE + 1)
    lapsed = jobs.view("job").steps["plan"]
    assert jobs.beat("job", "plan", "second") == "running"
    assert not jobs.send("job", "plan", was=lapsed)
    assert jobs.send("job", "plan", was=jobs.view("job").steps["plan"])


def test_an_answer_that_was_lost_on_its_way_may_be_asked_for_again(jobs: Jobs) -> None:
    jobs.send("job", "plan")
    assert [jobs.begin("job", "plan", "me"), jobs.begin("job", "plan", "me")] == ["go", "go"]
    assert jobs.view("job").steps["plan"].starts == 1


def test_a_lease_that_lapsed_is_taken_over_and_the_late_worker_ends_nothing(jobs: Jobs) -> None:
    jobs.send("job", "plan")
    jobs.begin("job", "plan", ELSEWHERE)
    let_pass(jobs, "job", "plan", LEASE + 1)
    assert jobs.begin("job", "plan", "second") == "go"
    assert jobs.beat("job", "plan", ELSEWHERE) == "taken"
    assert not jobs.finish("job", "plan", ELSEWHERE, {})
    jobs.hand_back("job", "plan", ELSEWHERE, "late")
    assert jobs.beat("job", "plan", "second") == "running"


def test_a_dead_process_of_this_machine_is_followed_at_once(jobs: Jobs) -> None:
    child = subprocess.run(
        [sys.executable, "-c", "from workers.owners import owner_name; print(owner_name())"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    dead = child.stdout.strip()
    jobs.send("job", "plan")
    assert jobs.begin("job", "plan", dead) == "go"
    assert jobs.begin("job", "plan", owner_name()) == "go"
    assert jobs.begin("job", "plan", owner_name()) == "busy"


def test_owners() -> None:
    assert not is_dead(owner_name())
    assert not is_dead(ELSEWHERE)
    assert not is_dead("")
    assert worker_of(owner_name("render@host")) == "render@host"
    assert worker_of("") == worker_of(ELSEWHERE) == ""
    place = owner_name().split("/")[1]
    assert is_dead(f"{place}/{2**22 - 1}/x") or os.path.exists(f"/proc/{2**22 - 1}")


def test_a_step_that_is_begun_three_times_in_vain_is_poisoned(jobs: Jobs) -> None:
    jobs.send("job", "plan")
    for _ in range(3):
        assert jobs.begin("job", "plan", ELSEWHERE) == "go"
        let_pass(jobs, "job", "plan", LEASE + 1)
        jobs.hand_back("job", "plan", ELSEWHERE, "crash")
    assert jobs.begin("job", "plan", "fourth") == "poisoned"


def test_uncounted_starts_are_no_attempts(jobs: Jobs) -> None:
    jobs.send("job", "plan")
    for _ in range(10):
        assert jobs.begin("job", "plan", "me") == "go"
        jobs.hand_back("job", "plan", "me", "waiting", pause=5, uncounted=True)
    state = jobs.view("job").steps["plan"]
    assert (state.status, state.starts, state.note) == ("handed back", 0, "waiting")
    assert 4 < state.due - state.at <= 5.001


def test_what_is_lost_is_forgotten_once_and_what_is_being_made_is_left_alone(jobs: Jobs) -> None:
    done(jobs, "job", "motion")
    jobs.send("job", "render:0")
    jobs.send("job", "render:1")
    for step in ("render:0", "render:1"):
        jobs.begin("job", step, ELSEWHERE)
    assert jobs.remake("job", "render:0", ELSEWHERE, ["motion"]) == 1
    assert [status(jobs, "job", step) for step in ("motion", "render:0")] == ["", ""]
    jobs.send("job", "motion")
    jobs.begin("job", "motion", "maker")
    assert jobs.remake("job", "render:1", ELSEWHERE, ["motion"]) == 0
    assert status(jobs, "job", "motion") == "running"
    assert jobs.begin("job", "render:1", "late message") == "gone"


def test_progress_counts_each_part_once(jobs: Jobs) -> None:
    for part, count in (("0", 10), ("0", 10), ("1", 4), ("0", 3), ("1", 5)):
        jobs.tell("job", "frames", part, count, 20)
    assert jobs.counts("job") == {"frames": 15}
    assert jobs.redis.xlen(jobs.key("job", "events")) == 3


def test_a_job_ends_once_and_nothing_is_told_after_it(jobs: Jobs) -> None:
    jobs.send("job", "plan")
    jobs.begin("job", "plan", "me")
    assert jobs.end("job", "failed", NoFaceError("no face"))
    assert not jobs.end("job", "done")
    jobs.tell("job", "frames", "0", 1, 2)
    jobs.event("job", {"stage": "late"})
    jobs.set_report("job", {"late": True})
    assert jobs.report("job") == {}
    assert jobs.redis.xlen(jobs.key("job", "events")) == 1
    assert jobs.beat("job", "plan", "me") == "failed"
    assert not jobs.finish("job", "plan", "me", {})
    assert not jobs.send("job", "mux")
    assert jobs.begin("job", "plan", "other") == "ended"
    assert jobs.running() == ["job"]
    jobs.cleaned("job")
    assert jobs.running() == []


def test_late_workers_leave_nothing_of_a_job_that_was_forgotten(jobs: Jobs) -> None:
    jobs.send("job", "plan")
    jobs.begin("job", "plan", "me")
    jobs.forget("job")
    assert jobs.beat("job", "plan", "me") == "lost"
    assert jobs.begin("job", "plan", "other") == "lost"
    jobs.finish("job", "plan", "me", {})
    jobs.hand_back("job", "plan", "me", "")
    jobs.tell("job", "frames", "0", 1, 2)
    jobs.event("job", {})
    jobs.set_report("job", {})
    jobs.end("job", "cancelled")
    assert jobs.redis.keys("*job:job*") == []
    with pytest.raises(JobNotFoundError):
        jobs.view("job")


def test_a_deadline_is_seen_by_whoever_begins_or_renews(redis_server: RedisServer) -> None:
    jobs = Jobs(redis_server.address)
    jobs.create(order("soon", deadline=jobs.now() + 1000))
    jobs.send("soon", "plan")
    assert jobs.begin("soon", "plan", "me") == "go"
    assert jobs.beat("soon", "plan", "me") == "running"
    jobs.redis.hincrbyfloat(jobs.key("soon"), "deadline", -1001)
    assert jobs.beat("soon", "plan", "me") == "late"
    assert jobs.begin("soon", "plan", "other") == "late"


def test_every_key_has_a_lifetime(jobs: Jobs) -> None:
    done(jobs, "job", "sound", "motion")
    jobs.tell("job", "frames", "0", 1, 2)
    jobs.remake("job", "plan", "", ["motion"])
    jobs.event("job", {"stage": "x"})
    jobs.set_report("job", {})
    jobs.end("job", "done")
    keys = jobs.redis.keys("fleet:*")
    assert len(keys) == 6
    assert all(jobs.redis.ttl(key) > 0 for key in keys)


def test_jobs_that_expired_are_not_listed(jobs: Jobs) -> None:
    jobs.create(order("second", submitted=jobs.now()))
    jobs.redis.delete(jobs.key("job"))
    assert jobs.all() == ["second"]
    assert jobs.redis.zcard(jobs.index) == 1


def test_a_server_that_is_away_is_one_line() -> None:
    jobs = Jobs(Address("127.0.0.1", 1))
    with pytest.raises(FleetUnreachableError, match=r"^Redis at redis://127\.0\.0\.1:1/0 cannot be reached"):
        jobs.view("job")
