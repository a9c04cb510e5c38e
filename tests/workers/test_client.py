"""Submitting, when servers fail in the middle of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.redis_server import RedisServer
from tests.workers.fleet import PORTRAIT, cut_voice
from tests.workers.orders import fleet_on
from workers.client import Client
from workers.supervisor import Supervisor


def fill(server: RedisServer) -> None:
    with server.client() as redis:
        redis.config_set("maxmemory", 1)


def make_room(server: RedisServer) -> None:
    with server.client() as redis:
        redis.config_set("maxmemory", 0)


@pytest.mark.parametrize(
    ("fail", "mend"), [(fill, make_room), (RedisServer.kill, RedisServer.start)], ids=["full", "away"]
)
def test_a_job_that_is_on_the_fleet_is_handed_in_whatever_becomes_of_its_messages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fail: Callable[[RedisServer], None], mend: Any
) -> None:
    """Whoever was told of an error submitted it once more, and it was rendered twice."""
    with RedisServer(persistent=True) as server:
        client = Client(server.url)
        create = client.fleet.jobs.create

        def create_and_fail(order: Any) -> None:
            create(order)
            fail(server)

        monkeypatch.setattr(client.fleet.jobs, "create", create_and_fail)
        job = client.submit(PORTRAIT, cut_voice(tmp_path / "voice.wav", 1))
        mend(server)
        assert [found.id for found in client.jobs()] == [job.id]
        fleet, app = fleet_on(server)
        Supervisor(fleet).look()
        assert app.sent == [f"{job.id}.sound.1", f"{job.id}.portrait.1"]
