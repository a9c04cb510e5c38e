"""Figures of what work takes, workers that are there, and what a job would take on them."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.redis_server import RedisServer
from tests.workers.orders import done, fleet_on, order
from workers.budget import makespan
from workers.canvas import ready
from workers.paces import LIFETIME, PRESENT, Paces, by_machine, machine_kind


@pytest.fixture
def paces(redis_server: RedisServer) -> Paces:
    return fleet_on(redis_server)[0].paces


def test_figures_are_kept_by_what_they_are_of(paces: Paces) -> None:
    paces.record("pack", "code", "key frame", 2.0, preset="quality", rung="cpu", machine="old")
    paces.record("pack", "code", "key frame", 0.1, preset="quality", rung="cuda", machine="new")
    paces.record("pack", "code", "key frame", 1.0, preset="preview", rung="cpu", machine="old")
    paces.record("pack", "code", "film", 0.5)
    found = paces.figures("pack", "code")
    assert by_machine(found, "key frame", "quality") == {"old": 2.0, "new": 0.1}
    assert by_machine(found, "key frame", "preview") == {"old": 1.0}
    assert by_machine(found, "film") == {machine_kind(): 0.5}
    assert paces.figures("pack", "other code") == paces.figures("other pack", "code") == []
    (key,) = paces.redis.keys("fleet:pace:*")
    assert 0 < paces.redis.ttl(key) <= LIFETIME


def test_the_last_measurements_count_most(paces: Paces) -> None:
    for seconds in (8.0, 4.0, 1.0):
        paces.record("pack", "code", "film", seconds, machine="one")
    assert by_machine(paces.figures("pack", "code"), "film") == {"one": 3.5}


def test_a_machine_is_as_fast_as_the_rung_that_it_used_last(paces: Paces) -> None:
    for rung, seconds in (("cuda", 0.1), ("cpu", 2.0)):
        paces.record("pack", "code", "key frame", seconds, preset="quality", rung=rung, machine="one")
    assert by_machine(paces.figures("pack", "code"), "key frame", "quality") == {"one": 2.0}


def test_workers_that_are_there(paces: Paces) -> None:
    paces.show("one@host", ["render", "encode"], 4)
    paces.show("two@host", ["media"], 1)
    paces.show("one@host", ["render"], 2)
    found = {(worker.queues, worker.processes, worker.machine) for worker in paces.present()}
    assert found == {(("render",), 2, machine_kind()), (("media",), 1, machine_kind())}
    assert paces.redis.ttl("fleet:workers") > 0
    old = json.loads(paces.redis.hget("fleet:workers", "two@host"))
    paces.redis.hset("fleet:workers", "two@host", json.dumps({**old, "at": old["at"] - PRESENT - 1}))
    assert [worker.queues for worker in paces.present()] == [("render",)]
    assert paces.redis.hkeys("fleet:workers") == [b"one@host"]


def test_what_was_decided_first_stands(redis_server: RedisServer) -> None:
    jobs = fleet_on(redis_server)[0].jobs
    now = jobs.now()
    jobs.create(order(submitted=now, deadline=now + 100))
    for rate in (5.0, 2.0):
        jobs.decide("job", {"lowered": {"keyframe_fps": [25, rate]}, "note": f"to {rate}"})
    assert jobs.order("job").settings["keyframe_fps"] == jobs.view("job").order.settings["keyframe_fps"] == 5.0
    assert jobs.view("job").budget == {"lowered": {"keyframe_fps": [25, 5.0]}, "note": "to 5.0"}
    assert [json.loads(data[b"data"])["note"] for _, data in jobs.redis.xrange("fleet:job:job:events")] == ["to 5.0"]
    jobs.end("job", "cancelled")
    jobs.forget("job")
    jobs.decide("job", {"lowered": {}, "note": ""})
    assert jobs.redis.keys("fleet:job:*") == []


def test_a_late_job_says_how_far_it_came(redis_server: RedisServer) -> None:
    fleet, _ = fleet_on(redis_server)
    now = fleet.jobs.now()
    fleet.jobs.create(order(submitted=now, deadline=now + 100))
    fleet.jobs.decide("job", {"lowered": {"preset": ["quality", "preview"]}, "note": "lowered to preview"})
    done(fleet.jobs, "job", "plan", key_frames=40, chunks=1, segments=[[0, 0]])
    fleet.jobs.tell("job", "frames", "0", 12, 40)
    fleet.late("job")
    error = fleet.jobs.view("job").error
    assert error is not None
    assert "deadline of 100 s: 12 of 40 key frames were rendered (lowered to preview); give" in error["message"]


def test_only_a_deadline_has_a_budget(redis_server: RedisServer) -> None:
    fleet, _ = fleet_on(redis_server)
    now = fleet.jobs.now()
    for job, deadline in (("timed", now + 100), ("free", None)):
        fleet.jobs.create(order(job, submitted=now, deadline=deadline))
        done(fleet.jobs, job, "sound", "portrait", "motion", "appearance")
    assert ready(fleet.jobs.view("timed")) == ["budget"]
    assert ready(fleet.jobs.view("free")) == ["plan"]
    done(fleet.jobs, "timed", "budget")
    assert ready(fleet.jobs.view("timed")) == ["plan"]


def test_orders_of_jobs_that_run(redis_server: RedisServer) -> None:
    jobs = fleet_on(redis_server)[0].jobs
    for name in ("one", "two", "three"):
        jobs.create(order(name, submitted=jobs.now()))
    jobs.end("two", "done")
    assert [found.job for found in jobs.running_orders()] == ["one", "three"]


@settings(derandomize=True, deadline=None, max_examples=40)
@given(tasks=st.lists(st.floats(0.1, 100), max_size=30), speeds=st.lists(st.floats(0.01, 10), min_size=1, max_size=8))
def test_the_time_that_tasks_take_side_by_side(tasks: list[float], speeds: list[float]) -> None:
    """No less than with the work perfectly shared; and where processes are alike, no more than a task longer."""
    found = makespan(tasks, speeds)
    shared = sum(tasks) / sum(1 / speed for speed in speeds)
    assert found >= shared * (1 - 1e-9)
    alike = makespan(tasks, [1.0] * len(speeds))
    assert alike <= sum(tasks) / len(speeds) + max(tasks, default=0) + 1e-9
    assert makespan(tasks, [2.0]) == pytest.approx(2 * sum(tasks))
