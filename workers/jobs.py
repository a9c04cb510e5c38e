"""What is known of a job, in Redis: its order, its state, its steps, its progress.

A step is one task's worth of work ("motion", "render:12"). It is *sent* when its message was put in a
queue, *running* while a worker renews its lease, *done* when its result stands. All changes go through
Lua scripts, so two workers never both begin a step, and a late worker never ends a step that another
took over. Times are Redis' own clock, in seconds.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from pipeline.errors import TalkreelError

from . import job_scripts
from .connections import RedisServer
from .errors import JobNotFoundError, error_to_json
from .job_view import JobView, StepState, read_step
from .order import Order
from .owners import is_dead

LEASE = 8.0
"""Seconds after which a running step whose worker did not renew it counts as abandoned. A worker renews every
half second; what a busy machine delays that by is far less."""

MOST_STARTS = 3
"""A step that was begun so often and never ended has killed its workers, and fails its job."""

LIFETIME = 24 * 3600
"""Seconds that a job is remembered after its last change."""

LONGEST_JOB = 8 * 24 * 3600
"""Seconds that jobs are looked after: more than the longest deadline."""

MOST_EVENTS = 1000
"""Progress events kept for a client that comes back later."""

RUNNING = "running"
ENDED = ("done", "failed", "cancelled")


P = ParamSpec("P")
R = TypeVar("R")


def _in_one_line(method: Callable[Concatenate[Jobs, P], R]) -> Callable[Concatenate[Jobs, P], R]:
    """Redis's errors become FleetUnreachableError or FleetFullError."""

    @wraps(method)
    def guarded(self: Jobs, /, *args: P.args, **kwargs: P.kwargs) -> R:
        with self.server.errors():
            return method(self, *args, **kwargs)

    return guarded


class Jobs:
    """The jobs in one Redis. Every method raises FleetUnreachableError or FleetFullError.

    Args:
        server: where they are. prefix: of every key.
        lifetime: seconds that a job is remembered after its last change.
    """

    def __init__(self, server: RedisServer, prefix: str = "fleet", lifetime: int = LIFETIME) -> None:
        self.server = server
        self.redis: Any = server.client()
        self.prefix = prefix
        self.lifetime = lifetime
        names = (
            "VIEW", "SEND", "BEGIN", "BEAT", "FINISH", "HAND_BACK", "REMAKE",
            "TELL", "EVENT", "DECIDE", "REPORT", "END",
        )  # fmt: skip
        self._scripts = {name: self.redis.register_script(getattr(job_scripts, name)) for name in names}

    def key(self, job: str, part: str = "") -> str:
        return f"{self.prefix}:job:{job}{':' + part if part else ''}"

    @property
    def index(self) -> str:
        """Sorted set of jobs by the time of their submission."""
        return f"{self.prefix}:jobs"

    @property
    def cared_for(self) -> str:
        """Sorted set of jobs that run, or have ended and were not cleaned up yet."""
        return f"{self.prefix}:running"

    @_in_one_line
    def now(self) -> float:
        seconds, micros = self.redis.time()
        return float(seconds) + micros / 1e6

    @_in_one_line
    def create(self, order: Order) -> None:
        """Write a new job down; it is running from now on."""
        head = {"order": order.to_json(), "state": RUNNING, "error": "", "deadline": str(order.deadline or 0)}
        with self.redis.pipeline(transaction=True) as pipe:
            pipe.hset(self.key(order.job), mapping=head)
            pipe.expire(self.key(order.job), self.lifetime)
            for name in (self.index, self.cared_for):
                pipe.zadd(name, {order.job: order.submitted})
                pipe.zremrangebyscore(name, 0, order.submitted - LONGEST_JOB)
                pipe.expire(name, LONGEST_JOB)
            pipe.execute()

    @_in_one_line
    def order(self, job: str) -> Order:
        """As the job is made: with what was lowered to meet its deadline.

        Raises JobNotFoundError: no such job (any more).
        """
        text, budget = self.redis.hmget(self.key(job), "order", "budget")
        if text is None:
            raise JobNotFoundError(job)
        return Order.from_json(text).lowered(json.loads(budget) if budget else None)

    @_in_one_line
    def running_orders(self) -> list[Order]:
        """Of all jobs that run."""
        with self.redis.pipeline(transaction=False) as pipe:
            for job in self.running():
                pipe.hmget(self.key(job), "state", "order")
            found = pipe.execute()
        return [Order.from_json(text) for state, text in found if state == RUNNING.encode()]

    @_in_one_line
    def state(self, job: str) -> str:
        """Raises JobNotFoundError: no such job (any more)."""
        text = self.redis.hget(self.key(job), "state")
        if text is None:
            raise JobNotFoundError(job)
        return str(text.decode())

    @_in_one_line
    def view(self, job: str) -> JobView:
        """Raises JobNotFoundError: no such job (any more)."""
        *hashes, (seconds, micros) = self._run("VIEW", job, "")
        head, steps = (dict(zip(flat[::2], flat[1::2], strict=True)) for flat in hashes)
        if b"order" not in head:
            raise JobNotFoundError(job)
        budget = json.loads(head[b"budget"]) if b"budget" in head else None
        return JobView(
            order=Order.from_json(head[b"order"]).lowered(budget),
            budget=budget,
            state=head[b"state"].decode(),
            error=json.loads(head[b"error"]) if head.get(b"error") else None,
            steps={name.decode(): read_step(text) for name, text in steps.items()},
            now=float(seconds) + int(micros) / 1e6,
        )

    @_in_one_line
    def all(self) -> list[str]:
        """Jobs that are remembered, oldest first."""
        jobs = [job.decode() for job in self.redis.zrange(self.index, 0, -1)]
        with self.redis.pipeline(transaction=False) as pipe:
            for job in jobs:
                pipe.exists(self.key(job))
            found = pipe.execute() if jobs else []
        if gone := [job for job, there in zip(jobs, found, strict=True) if not there]:
            self.redis.zrem(self.index, *gone)
        return [job for job, there in zip(jobs, found, strict=True) if there]

    @_in_one_line
    def running(self) -> list[str]:
        """Jobs that somebody has to look after, oldest first: those that run, and those whose end was not
        followed by `cleaned` yet."""
        return [job.decode() for job in self.redis.zrange(self.cared_for, 0, -1)]

    @_in_one_line
    def cleaned(self, job: str) -> None:
        """The job has ended and what it held is gone: nobody has to look after it any more."""
        self.redis.zrem(self.cared_for, job)

    # Steps. `owner` names the run of a step in a process (see `owners`).

    @_in_one_line
    def send(self, job: str, step: str, was: StepState | None = None) -> bool:
        """Mark a step as sent, before its message is put in a queue; False when that is not wanted.

        Only a step that was never sent; or, with `was`, one that still stands so: that nobody else sent or began
        meanwhile, and whose worker gave no sign of life.
        """
        return bool(self._run("SEND", job, step, *((was.status, repr(was.at)) if was else ("", "0"))))

    @_in_one_line
    def begin(self, job: str, step: str, owner: str) -> str:
        """Take a step: "go", or why not: "done", "busy", "ended", "late", "poisoned", "gone" (it was taken
        back, and will be sent again), "lost" (the job is not known)."""
        limits = (str(LEASE), str(MOST_STARTS))
        verdict, _, other = self._run("BEGIN", job, step, owner, *limits, "").decode().partition(" ")
        if verdict == "busy" and is_dead(other):
            verdict, _, _ = self._run("BEGIN", job, step, owner, *limits, other).decode().partition(" ")
        return str(verdict)

    @_in_one_line
    def beat(self, job: str, step: str, owner: str, moved: bool = False) -> str:
        """Renew the lease; "running", or what became of the job or the step: a state, "late", "taken", "lost".
        `moved`: the work got further since it was renewed last."""
        return str(self._run("BEAT", job, step, owner, "1" if moved else "0").decode())

    @_in_one_line
    def finish(self, job: str, step: str, owner: str, result: Mapping[str, Any]) -> bool:
        """The step is done; False when it was taken over meanwhile or the job has ended."""
        return bool(self._run("FINISH", job, step, owner, json.dumps(result)))

    @_in_one_line
    def hand_back(
        self, job: str, step: str, owner: str, note: str, *, pause: float = 2.0, uncounted: bool = False,
        lacking: bool = False,
    ) -> None:  # fmt: skip
        """Give a step up; it is sent again after `pause` seconds. `uncounted`: this start does not count among
        those after which a step is given up for good. `lacking`: for want of memory or of Redis, which is counted."""
        self._run("HAND_BACK", job, step, owner, note, str(pause), "1" if uncounted else "0", "1" if lacking else "0")

    @_in_one_line
    def remake(self, job: str, step: str, owner: str, makers: list[str]) -> int:
        """What this step needs is gone: forget the steps that made it, so that they are sent again, and this
        one, so that it follows them. How often the one that was lost most often was lost by now."""
        return int(self._run("REMAKE", job, step, owner, *makers))

    def _run(self, script: str, job: str, step: str, *args: str) -> Any:
        parts = [self.key(job), *(self.key(job, part) for part in ("steps", "events", "counts")), self.cared_for]
        return self._scripts[script](keys=parts, args=[step, self.lifetime, *args])

    # The job's end and its progress. Nothing is told of a job after its end.

    @_in_one_line
    def end(self, job: str, state: str, error: TalkreelError | None = None) -> bool:
        """Done, failed or cancelled; False when it had ended before. Who gets True cleans up."""
        data = error_to_json(error) if error else None
        event = {"state": state, **({"error": data} if data else {})}
        texts = (json.dumps(data) if data else "", json.dumps(event))
        return bool(self._run("END", job, "", state, *texts, str(MOST_EVENTS)))

    @_in_one_line
    def event(self, job: str, data: Mapping[str, Any]) -> None:
        """Tell whoever follows the job; `data` is small JSON."""
        self._run("EVENT", job, "", json.dumps(data), str(MOST_EVENTS))

    @_in_one_line
    def tell(self, job: str, stage: str, part: str, done: int, total: int) -> None:
        """Progress: of a part of a stage, `done` is done; `total` is that of all parts. A part that is done
        again counts once."""
        self._run("TELL", job, "", stage, part, str(done), str(total), str(MOST_EVENTS))

    @_in_one_line
    def counts(self, job: str) -> dict[str, int]:
        """Done by stage, over all its parts."""
        counts: dict[str, int] = {}
        for field_name, count in self.redis.hgetall(self.key(job, "counts")).items():
            stage = field_name.decode().partition("/")[0]
            counts[stage] = counts.get(stage, 0) + int(count)
        return counts

    @_in_one_line
    def decide(self, job: str, budget: Mapping[str, Any]) -> None:
        """How the job is made so as to meet its deadline (see `pipeline.budget.Decision`), once: whatever is decided
        later is not heeded."""
        news = {"stage": "budget", "done": 1, "total": 1, "lowered": budget["lowered"], "note": budget["note"]}
        self._run("DECIDE", job, "", json.dumps(budget), json.dumps(news), str(MOST_EVENTS))

    @_in_one_line
    def set_report(self, job: str, report: Mapping[str, Any]) -> None:
        """Keep what happened."""
        self._run("REPORT", job, "", json.dumps(report))

    @_in_one_line
    def report(self, job: str) -> dict[str, Any]:
        """What happened; {} before the job's end."""
        text = self.redis.hget(self.key(job), "report")
        return json.loads(text) if text else {}

    @_in_one_line
    def forget(self, job: str) -> None:
        """Every trace of the job; its artifacts are the store's."""
        self.redis.unlink(*(self.key(job, part) for part in ("", "steps", "events", "counts")))
        self.redis.zrem(self.index, job)
        self.redis.zrem(self.cared_for, job)
