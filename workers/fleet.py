"""The fleet as one process sees it: jobs, artifacts, and how steps get into the queues."""

from __future__ import annotations

import logging
from typing import Any

from celery import Celery
from kombu.exceptions import OperationalError

from pipeline.errors import TalkreelError

from .artifacts import ArtifactStore, RedisStore
from .canvas import QUEUES, finished, kind_of, number_of, ready
from .config import PRIORITIES
from .connections import Connections
from .errors import JobLostError, JobNotFoundError
from .jobs import Jobs

log = logging.getLogger(__name__)

SHARED = "shared"
"""The holder of appearances: they outlive their job for a while, since the same portrait tends to come back."""

FILM_LIFETIME = 24 * 3600.0
"""Seconds that a finished film stays in Redis."""

JOB_LIFETIME = 24 * 3600.0
"""Seconds that inputs and everything made from them live at most."""


class Fleet:
    """Jobs, artifacts and queues behind one pair of servers.

    Args:
        connections: the servers. app: the Celery application that sends; tasks use the one they run in.
        store: artifacts, where another than the connections' is wanted.
    """

    def __init__(self, connections: Connections, app: Celery, store: ArtifactStore | None = None) -> None:
        self.connections = connections
        self.app = app
        self.jobs = Jobs(connections.artifacts.client())
        self.store = store or RedisStore(connections.artifacts)

    def advance(self, job: str) -> None:
        """Send every step that may follow; end the job when its film is made.

        A step is first marked as sent and then put in its queue. Where the second fails, the supervisor
        finds the step without a message and sends it again.
        """
        try:
            view = self.jobs.view(job)
        except JobNotFoundError:
            return
        if view.state != "running":
            return
        if finished(view):
            self.end(job, "done")
            return
        for step in ready(view):
            if self.jobs.send(job, step):
                self.publish(job, step, view.order.priority, 1)

    def publish(self, job: str, step: str, priority: str, send: int) -> None:
        """Put a step's message in its queue. `send`: how often it was sent, this time included."""
        kind = kind_of(step)
        try:
            self.app.send_task(
                f"talkreel.{kind}",
                args=[job, *([number_of(step)] if ":" in step else [])],
                queue=QUEUES[kind],
                priority=PRIORITIES[priority],
                task_id=task_id(job, step, send),
                argsrepr=f"job {job}" + (f", {kind} {number_of(step)}" if ":" in step else ""),
                retry=False,
            )
        except OperationalError as error:
            log.warning("the broker does not answer (%s); %s of job %s will be sent later", error, step, job)

    def end(self, job: str, state: str, error: TalkreelError | None = None) -> None:
        """End a job, once: its artifacts go, but for the film of one that is done."""
        if self.jobs.end(job, state, error):
            self.store.release(job, keep={"film", "report"} if state == "done" else ())

    def remake(self, job: str, step: str, maker: str | None, lost: str) -> None:
        """An artifact that a step needs is gone: have it made again, or fail the job when it was an input."""
        if maker is None:
            self.end(job, "failed", JobLostError(job, lost))
            return
        self.jobs.undo(job, maker, step)
        self.advance(job)

    def message_count(self) -> int:
        """Messages that wait in the queues, all priorities together."""
        client: Any = self.connections.broker.client()
        names = [name for queue in set(QUEUES.values()) for name in queue_lists(queue)]
        return int(sum(client.llen(name) for name in names))


def task_id(job: str, step: str, send: int) -> str:
    """Id of a step's message; says in Flower what it is, and lets the supervisor find it in the broker."""
    return f"{job}.{step.replace(':', '-')}.{send}"


def queue_lists(queue: str) -> list[str]:
    """Redis lists of a queue, one a priority."""
    return [queue if value == 0 else f"{queue}:{value}" for value in sorted(PRIORITIES.values())]
