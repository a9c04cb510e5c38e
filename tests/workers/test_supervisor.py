"""The supervisor, round by round: what it sends again, and what it leaves alone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.redis_server import RedisServer
from tests.workers.orders import ELSEWHERE, SentApp, done, fleet_on, let_pass, order, status
from workers import supervisor as module
from workers.client import Client
from workers.connections import Connections
from workers.errors import FleetUnreachableError
from workers.fleet import Fleet
from workers.job_view import JobView
from workers.jobs import LEASE
from workers.supervisor import SETTLING, Supervisor


@pytest.fixture
def looked(redis_server: RedisServer) -> tuple[Fleet, SentApp, Supervisor]:
    fleet, app = fleet_on(redis_server)
    fleet.jobs.create(order(submitted=fleet.jobs.now()))
    fleet.advance("job")
    assert app.sent == ["job.sound.1", "job.portrait.1"]
    app.sent.clear()
    return fleet, app, Supervisor(fleet)


def message(fleet: Fleet, task: str) -> str:
    return json.dumps({"headers": {"id": task, "task": "talkreel.sound"}})


def deliver(fleet: Fleet, task: str) -> None:
    """Have a message with a worker, as kombu keeps it."""
    fleet.jobs.redis.hset("unacked", f"tag-{task}", json.dumps([json.loads(message(fleet, task)), "", "media"]))
    fleet.jobs.redis.zadd("unacked_index", {f"tag-{task}": 1})


def test_a_message_that_is_on_its_way_is_waited_for(looked: tuple[Fleet, SentApp, Supervisor]) -> None:
    _fleet, app, supervisor = looked
    supervisor.look()
    assert app.sent == []


def test_a_message_that_is_gone_is_sent_again(looked: tuple[Fleet, SentApp, Supervisor]) -> None:
    fleet, app, supervisor = looked
    fleet.jobs.redis.lpush("media:3", message(fleet, "job.portrait.1"))
    for step in ("sound", "portrait"):
        let_pass(fleet.jobs, "job", step, SETTLING + 1)
    supervisor.look()
    assert app.sent == ["job.sound.2"]
    supervisor.look()
    assert app.sent == ["job.sound.2"]


def test_a_message_that_went_down_with_its_worker_is_sent_again(
    looked: tuple[Fleet, SentApp, Supervisor], monkeypatch: pytest.MonkeyPatch
) -> None:
    fleet, app, supervisor = looked
    deliver(fleet, "job.sound.1")
    fleet.jobs.redis.lpush("media:3", message(fleet, "job.portrait.1"))
    let_pass(fleet.jobs, "job", "sound", SETTLING + 1)
    supervisor.look()
    assert app.sent == []  # it may be about to begin
    monkeypatch.setattr(module, "DELIVERED", 0.0)
    supervisor.look()
    assert app.sent == ["job.sound.2"]


def test_messages_of_dead_workers_are_forgotten_once_their_step_is_done(
    looked: tuple[Fleet, SentApp, Supervisor], monkeypatch: pytest.MonkeyPatch
) -> None:
    fleet, _app, supervisor = looked
    monkeypatch.setattr(module, "DELIVERED", -1.0)
    done(fleet.jobs, "job", "sound")
    for task in ("job.sound.1", "other.plan.1", "job.portrait.1"):
        deliver(fleet, task)
    supervisor.look()
    assert fleet.jobs.redis.hkeys("unacked") == [b"tag-job.portrait.1"]
    assert fleet.jobs.redis.zrange("unacked_index", 0, -1) == [b"tag-job.portrait.1"]


def test_a_lease_that_lapsed_is_sent_again_and_one_that_holds_is_not(
    looked: tuple[Fleet, SentApp, Supervisor],
) -> None:
    fleet, app, supervisor = looked
    for step in ("sound", "portrait"):
        fleet.jobs.begin("job", step, ELSEWHERE)
    let_pass(fleet.jobs, "job", "sound", LEASE + 1)
    supervisor.look()
    assert app.sent == ["job.sound.2"]
    assert status(fleet.jobs, "job", "portrait") == "running"


def test_leases_are_trusted_again_only_some_time_after_redis_was_away(
    looked: tuple[Fleet, SentApp, Supervisor],
) -> None:
    fleet, app, supervisor = looked
    fleet.jobs.begin("job", "sound", ELSEWHERE)
    let_pass(fleet.jobs, "job", "sound", LEASE + 1)
    supervisor.redis_was_away()
    supervisor.look()
    assert app.sent == []


def test_what_was_handed_back_is_sent_when_it_is_due(looked: tuple[Fleet, SentApp, Supervisor]) -> None:
    fleet, app, supervisor = looked
    fleet.jobs.begin("job", "sound", "me")
    fleet.jobs.hand_back("job", "sound", "me", "another worker is making it", pause=30)
    supervisor.look()
    assert app.sent == []
    let_pass(fleet.jobs, "job", "sound", 31)
    supervisor.look()
    assert app.sent == ["job.sound.2"]


def test_a_worker_that_died_before_it_could_send_what_follows(looked: tuple[Fleet, SentApp, Supervisor]) -> None:
    fleet, app, supervisor = looked
    done(fleet.jobs, "job", "sound")
    supervisor.look()
    assert app.sent == ["job.motion.1"]


def test_an_end_that_was_cut_short_is_completed(looked: tuple[Fleet, SentApp, Supervisor]) -> None:
    fleet, _app, supervisor = looked
    fleet.store.put("input:p", b"picture", job="job", lifetime=60)
    fleet.jobs.end("job", "failed")
    supervisor.look()
    assert fleet.store.usage("job") == {}
    assert fleet.jobs.running() == []


def test_a_job_whose_time_is_up_ends(redis_server: RedisServer) -> None:
    fleet, _ = fleet_on(redis_server)
    now = fleet.jobs.now()
    fleet.jobs.create(order("late", submitted=now - 10, deadline=now - 5))
    Supervisor(fleet).look()
    view = fleet.jobs.view("late")
    assert view.state == "failed"
    assert view.error is not None
    assert view.error["message"] == "job late was not done within its deadline of 5 s; give it more time"


def test_jobs_that_vanished_are_no_longer_looked_after(looked: tuple[Fleet, SentApp, Supervisor]) -> None:
    fleet, _app, supervisor = looked
    fleet.jobs.redis.delete(fleet.jobs.key("job"))
    supervisor.look()
    assert fleet.jobs.running() == []


def test_a_job_that_is_forgotten_while_it_is_looked_at(
    redis_server: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    fleet, _ = fleet_on(redis_server)
    now, view = fleet.jobs.now(), fleet.jobs.view
    fleet.jobs.create(order("late", submitted=now - 10, deadline=now - 5))

    def viewed(job: str) -> JobView:
        found = view(job)
        fleet.jobs.forget(job)
        return found

    monkeypatch.setattr(fleet.jobs, "view", viewed)
    Supervisor(fleet).look()
    assert fleet.jobs.all() == []


def test_a_message_of_another_kind_is_left_alone(
    looked: tuple[Fleet, SentApp, Supervisor], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that somebody sent by hand, and whose worker died."""
    fleet, _app, supervisor = looked
    monkeypatch.setattr(module, "DELIVERED", -1.0)
    deliver(fleet, "5e0f")
    supervisor.look()
    assert fleet.jobs.redis.hkeys("unacked") == [b"tag-5e0f"]


def test_a_job_whose_client_lost_the_server_before_it_could_send(
    redis_server: RedisServer, sample_portrait_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = Client(connections=Connections.read(redis_server.url, {}))

    def away(_: str) -> None:
        raise FleetUnreachableError("Redis is away")

    monkeypatch.setattr(client.fleet, "advance", away)
    job = client.submit(sample_portrait_path, sample_portrait_path.with_name("voice.wav"))
    fleet, app = fleet_on(redis_server)
    Supervisor(fleet).look()
    assert app.sent == [f"{job.id}.sound.1", f"{job.id}.portrait.1"]


def test_one_supervisor_looks_at_a_time(redis_server: RedisServer) -> None:
    fleet, _ = fleet_on(redis_server)
    first, second = Supervisor(fleet), Supervisor(fleet)
    assert [first.locked(), second.locked(), first.locked()] == [True, False, True]
    fleet.jobs.redis.delete("fleet:supervisor")
    assert second.locked()


def test_a_broker_that_is_away_costs_nothing_but_time() -> None:
    with RedisServer() as server:
        fleet, _ = fleet_on(server)
        server.stop()
        with pytest.raises(FleetUnreachableError):
            Supervisor(fleet).look()


def test_a_full_server_is_emptied_of_what_ended_jobs_held() -> None:
    """A job that could not be sent came first and ended the round, each time."""
    with RedisServer() as server, server.client() as redis:
        fleet, _app = fleet_on(server)
        for job in ("first", "second"):
            fleet.jobs.create(order(job, submitted=fleet.jobs.now()))
        fleet.store.put("input:p", bytes(1 << 20), job="second", lifetime=60)
        fleet.jobs.end("second", "cancelled")
        redis.config_set("maxmemory", 1)
        Supervisor(fleet).look()
        assert fleet.store.usage("second") == {}


def test_a_job_is_cancelled_to_empty_a_full_server() -> None:
    with RedisServer() as server, server.client() as redis:
        fleet, _app = fleet_on(server)
        fleet.jobs.create(order(submitted=fleet.jobs.now()))
        fleet.store.put("input:p", bytes(1 << 20), job="job", lifetime=60)
        redis.config_set("maxmemory", redis.info("memory")["used_memory"] - (1 << 19))
        fleet.end("job", "cancelled")
        assert fleet.jobs.state("job") == "cancelled"
        assert fleet.store.usage("job") == {}
