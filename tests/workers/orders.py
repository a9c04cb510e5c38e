"""Jobs without a film: orders, a queue that only remembers, and time that passes at once."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from pipeline.settings import Settings
from tests.redis_server import RedisServer
from workers.connections import Connections
from workers.fleet import Fleet
from workers.jobs import Jobs
from workers.keys import code_identity
from workers.order import Order

ELSEWHERE = "another-machine.1/4711/abcdef01"
"""Owner of a step in a process of which nothing is known here."""


def order(job: str = "job", **changes: Any) -> Order:
    words = {"portrait": "input:p", "audio": "input:a", "portrait_name": "p.png", "audio_name": "a.wav"}
    return Order(**{
        "job": job, "settings": Settings().to_json(), "pack": "embedded", "pack_identity": "1",
        "code": code_identity(), **words, **changes,
    })  # fmt: skip


@dataclass
class SentApp:
    """In place of Celery: remembers what was sent."""

    sent: list[str] = field(default_factory=list)

    def send_task(self, name: str, *, task_id: str, **_: Any) -> None:
        self.sent.append(task_id)


def fleet_on(server: RedisServer) -> tuple[Fleet, SentApp]:
    app = SentApp()
    return Fleet(Connections.read(server.url, {}), app), app  # type: ignore[arg-type]


def let_pass(jobs: Jobs, job: str, step: str, seconds: float) -> None:
    """Make a step's last sign of life so much older."""
    key = jobs.key(job, "steps")
    state = json.loads(jobs.redis.hget(key, step))
    state["at"] -= seconds
    if "due" in state:
        state["due"] -= seconds
    jobs.redis.hset(key, step, json.dumps(state))


def done(jobs: Jobs, job: str, *steps: str, **result: Any) -> None:
    """Have steps done."""
    for step in steps:
        jobs.send(job, step)
        jobs.begin(job, step, "worker")
        assert jobs.finish(job, step, "worker", result)


def status(jobs: Jobs, job: str, step: str) -> str:
    """A step's status, "" where it is not known."""
    state = jobs.view(job).steps.get(step)
    return state.status if state else ""
