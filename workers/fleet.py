"""The fleet as one process sees it: jobs, artifacts, and how steps get into the queues."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import asdict

from celery import Celery
from kombu.exceptions import OperationalError

from pipeline.errors import TalkreelError
from pipeline.report import Report
from pipeline.stage_record import StageRecord

from .artifacts import ArtifactStore, RedisStore
from .broker import Broker
from .canvas import QUEUES, finished, kind_of, needless_chunks, number_of, producer, ready, settled_step
from .config import PRIORITIES
from .connections import Connections
from .errors import DeadlineError, JobFailedError, JobLostError, JobNotFoundError
from .films import Films, delete_film
from .job_view import JobView
from .jobs import Jobs
from .keys import Keys
from .order import Order
from .paces import Paces
from .value_cache import ValueCache

log = logging.getLogger(__name__)

SHARED = "shared"
"""The holder of appearances: they outlive their job for a while, since the same portrait tends to come back."""

JOB_LIFETIME = 24 * 3600.0
"""Seconds that inputs and everything made from them live at most."""

MOST_LOST = 10
"""Times that one step's artifacts are made again, before the job fails: a server that evicts them at once would
keep the fleet busy for ever."""


class Fleet:
    """Jobs, artifacts and queues behind one pair of servers.

    Args:
        connections: the servers. app: the Celery application that sends; tasks use the one they run in.
        store: artifacts, where another than the connections' is wanted.
    """

    def __init__(self, connections: Connections, app: Celery, store: ArtifactStore | None = None) -> None:
        self.connections = connections
        self.app = app
        self.jobs = Jobs(connections.artifacts)
        self.store = store or RedisStore(connections.artifacts)
        self.values = ValueCache(self.store)
        self.films = Films.read(self.store)
        self.paces = Paces(connections.artifacts)

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
            self.clean(job, state)

    def clean(self, job: str, state: str) -> None:
        """Free what a job that has ended held; done again by the supervisor where this was cut short."""
        self.store.release(job, keep={"film"} if state == "done" else ())
        if state != "done":
            self.films.delete(job)
        self.jobs.cleaned(job)

    def late(self, job: str, reason: str = "") -> None:
        """End a job whose deadline has passed or, for the reason given, cannot be met."""
        try:
            view = self.jobs.view(job)
        except JobNotFoundError:
            return
        order = view.order
        if not reason and (plan := view.result("plan")):
            done = self.jobs.counts(job).get("frames", 0)
            note = f" ({view.budget['note']})" if view.budget and view.budget["note"] else ""
            reason = f"{done} of {plan['key_frames']} key frames were rendered{note}"
        self.end(job, "failed", DeadlineError(job, round((order.deadline or 0) - order.submitted, 3), reason))

    def drop_late_film(self, job: str) -> None:
        """Delete a film that came after the job's end."""
        try:
            over = self.jobs.state(job) in ("failed", "cancelled")
        except JobNotFoundError:
            over = True
        if over:
            self.films.delete(job)

    def drop_frames(self, view: JobView) -> None:
        """Free frames that no segment needs any more."""
        keys = Keys(view.order)
        chunks = needless_chunks(view)
        steps = [(chunk, settled) for chunk in chunks for settled in (False, True)]
        if steps:
            self.store.drop(view.order.job, [keys.frames(chunk, settled) for chunk, settled in steps])

    def store_report(self, order: Order, report: Report) -> None:
        """Add what the steps reported to the report of the last one, and keep it."""
        view = self.jobs.view(order.job)
        data = report.to_json()
        steps = [settled_step(view, chunk) for chunk in range((view.result("plan") or {}).get("chunks", 0))]
        repairs = [repair for step in steps if step for repair in view.steps[step].result["repairs"]]
        for state in view.steps.values():
            for stage, record in state.result.get("report", {}).items():
                total = StageRecord.of_json(data["stages"].get(stage, {}))
                data["stages"][stage] = asdict(total.plus(StageRecord.of_json(record)))
        data["peak_memory"] = max(record["peak_memory"] for record in data["stages"].values())
        for name, kind in (("rendered_again", "rendered again"), ("carried_on", "carried on")):
            data["frames"][name] = [
                {"frame": r["index"], "reasons": list(r["reasons"])} for r in repairs if r["kind"] == kind
            ]
        if view.budget is not None:
            data["budget"] = view.budget
            data["notes"] += [view.budget["note"]] if view.budget["note"] else []
        data["seconds"] = view.now - order.submitted
        data["job"] = order.job
        self.jobs.set_report(order.job, data)

    def forget(self, job: str) -> None:
        """Erase a job and everything it holds, what it shares with no other job included."""
        view = self.jobs.view(job)
        self.jobs.end(job, "cancelled")
        self.store.release(job)
        self.films.delete(job)
        if (made := view.result("mux")) is not None:
            delete_film(made["film"])  # this process may not be told where films are kept
        self.store.drop(SHARED, [Keys(view.order).appearance])
        self.jobs.forget(job)

    def remake(self, job: str, step: str, owner: str, keys: Sequence[str]) -> None:
        """Artifacts that a step needs are gone: have them made again, or fail the job where one was an input."""
        makers = [producer(key) for key in keys]
        if None in makers:
            self.end(job, "failed", JobLostError(job, "portrait or recording"))
            return
        if self.jobs.remake(job, step, owner, [maker for maker in makers if maker]) > MOST_LOST:
            reason = f"what it needs ({', '.join(keys)}) is lost again and again; does Redis evict or run full?"
            self.end(job, "failed", JobFailedError(job, step, reason))
            return
        self.advance(job)

    def message_count(self) -> int:
        """Messages that wait in the queues, all priorities together."""
        return sum(Broker(self.connections.broker).lengths().values())


def task_id(job: str, step: str, send: int) -> str:
    """Id of a step's message; says in Flower what it is, and lets the supervisor find it in the broker."""
    return f"{job}.{step.replace(':', '-')}.{send}"
