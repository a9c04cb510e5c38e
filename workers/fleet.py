"""The fleet as one process sees it: jobs, artifacts, and how steps get into the queues."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

from celery import Celery
from kombu.exceptions import OperationalError

from pipeline.errors import TalkreelError
from pipeline.report import Report

from .artifacts import ArtifactStore, RedisStore
from .canvas import QUEUES, finished, kind_of, number_of, ready, settled_step
from .config import PRIORITIES
from .connections import Connections
from .errors import DeadlineError, JobLostError, JobNotFoundError
from .jobs import Jobs, Order
from .keys import Keys

log = logging.getLogger(__name__)

SHARED = "shared"
"""The holder of appearances: they outlive their job for a while, since the same portrait tends to come back."""

STALLED = 20.0
"""Seconds without a sign of life after which a step counts as stalled."""

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

    def late(self, job: str) -> None:
        """End a job whose deadline has passed."""
        order = self.jobs.order(job)
        self.end(job, "failed", DeadlineError(job, round((order.deadline or 0) - order.submitted, 3)))

    def store_film(self, job: str, key: str, path: Path) -> None:
        """Keep a finished film where the client fetches it."""
        self.store.put(key, path.read_bytes(), job=job, lifetime=FILM_LIFETIME)

    def fetch_film(self, job: str, key: str) -> bytes:
        """Raises ArtifactMissingError: it has expired."""
        with self.connections.artifacts.errors():
            return self.store.get(key)

    def store_report(self, order: Order, report: Report) -> None:
        """Add what the steps reported to the report of the last one, and keep it."""
        view = self.jobs.view(order.job)
        data = report.to_json()
        repairs = [
            repair
            for chunk in range((view.result("plan") or {}).get("chunks", 0))
            for repair in (view.result(settled_step(view, chunk)) or {})["repairs"]
        ]
        for state in view.steps.values():
            for stage, record in state.result.get("report", {}).items():
                total = data["stages"].setdefault(stage, {"seconds": 0.0, "provider": None})
                total["seconds"] += record["seconds"]
                total["provider"] = record["provider"] or total["provider"]
        for name, kind in (("rendered_again", "rendered again"), ("carried_on", "carried on")):
            data["frames"][name] = [
                {"frame": r["index"], "reasons": list(r["reasons"])} for r in repairs if r["kind"] == kind
            ]
        data["seconds"] = view.now - order.submitted
        data["job"] = order.job
        self.jobs.set_report(order.job, data)

    def forget(self, job: str) -> None:
        """Erase a job and everything it holds, what it shares with no other job included."""
        order = self.jobs.order(job)
        self.jobs.end(job, "cancelled")
        self.store.release(job)
        self.store.drop(SHARED, [Keys(order).appearance])
        self.jobs.forget(job)

    def status(self, job: str) -> dict[str, Any]:
        """A job as JSON: state, steps by status, bytes held, and what makes no progress."""
        view = self.jobs.view(job)
        steps: dict[str, dict[str, int]] = {}
        for step, state in view.steps.items():
            kind = steps.setdefault(kind_of(step), {})
            kind[state.status] = kind.get(state.status, 0) + 1
        stalled = [
            {
                "step": step,
                "status": state.status,
                "worker": state.owner,
                "seconds": view.now - state.at,
                "note": state.note,
            }
            for step, state in view.steps.items()
            if state.status != "done" and view.now - state.at > STALLED
        ]
        return {
            "job": job,
            "state": view.state,
            "error": view.error,
            "submitted": view.order.submitted,
            "seconds": view.now - view.order.submitted,
            "priority": view.order.priority,
            "steps": steps,
            "frames": {
                "done": self.jobs.counts(job).get("frames", 0),
                "total": (view.result("plan") or {}).get("key_frames"),
            },
            "bytes": self.store.usage(job),
            "stalled": stalled if view.state == "running" else [],
        }

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
