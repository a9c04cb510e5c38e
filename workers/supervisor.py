"""Finds what was lost: steps whose worker died, steps whose message is gone, jobs whose time is up.

Celery hands out again what a lost worker had not acknowledged, but only after the visibility timeout, and
knows nothing of messages that went down with the broker. So every worker runs this in a thread of its main
process; a lock lets one of them look at a time.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from uuid import uuid4

from .broker import Broker, Delivered
from .canvas import QUEUES, kind_of
from .errors import FleetFullError, JobNotFoundError
from .fleet import Fleet, task_id
from .job_view import JobView, StepState
from .jobs import LEASE, RUNNING
from .owners import is_dead

log = logging.getLogger(__name__)

EVERY = 1.0
"""Seconds between two looks."""

SHARE = 4.0
"""A round that took long, since there are thousands of jobs, is followed by a pause of so many times its length."""

SETTLING = 3.0
"""Seconds that a sent step may be on its way into the broker or from there into a worker."""

DELIVERED = 10.0
"""Seconds that a worker may have a message and not begin its step: a process that is being replaced."""

SWEEP = 600.0
"""Seconds between two looks for films that were kept for long enough."""


class Messages:
    """The broker's messages, read once a round and only where somebody asks."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._waiting: dict[str, set[str]] = {}
        self._first_seen: dict[Delivered, float] = {}
        self._delivered: dict[str, float] | None = None

    def next_round(self) -> None:
        """Forget what the broker said, so that it is asked again."""
        self._waiting.clear()
        self._delivered = None

    def exists(self, queue: str, task: str) -> bool:
        """Whether a task's message waits, or came to a worker not long ago."""
        if queue not in self._waiting:
            self._waiting[queue] = self._broker.waiting(queue)
        if task in self._waiting[queue]:
            return True
        if self._delivered is None:
            self.look_at_delivered()
        assert self._delivered is not None
        return self._delivered.get(task, DELIVERED) < DELIVERED

    def look_at_delivered(self) -> dict[Delivered, float]:
        """Delivered messages, and the seconds since each was first seen."""
        now = time.monotonic()
        self._first_seen = {message: self._first_seen.get(message, now) for message in self._broker.delivered()}
        ages = {message: now - first for message, first in self._first_seen.items()}
        self._delivered = {message.task: age for message, age in ages.items()}
        return ages


class Supervisor:
    """Looks after all jobs of a fleet. `look` is one round; `start` runs rounds in a thread.

    Args:
        show: lets the fleet know that this worker is there; called each time, by whoever does not look too.
    """

    def __init__(self, fleet: Fleet, show: Callable[[], object] = lambda: None) -> None:
        self.fleet = fleet
        self._show = show
        self._broker = Broker(fleet.connections.broker)
        self._messages = Messages(self._broker)
        self._name = uuid4().hex
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._trust_leases_at = 0.0
        self._sweep_at = 0.0

    def start(self) -> None:
        self._thread = threading.Thread(target=self._run, name="supervisor", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()

    def _run(self) -> None:
        pause = EVERY
        while not self._stop.wait(pause):
            begun = time.monotonic()
            try:
                self._show()
                if self.locked(pause):
                    self.look()
            except Exception as error:  # Redis away: the next round will do
                log.warning("supervisor: %s", error)
                self.redis_was_away()
            pause = max(EVERY, SHARE * (time.monotonic() - begun))

    def redis_was_away(self) -> None:
        """Nobody could renew a lease meanwhile: leave them alone until everybody has had the time to."""
        self._trust_leases_at = time.monotonic() + LEASE

    def locked(self, pause: float = EVERY) -> bool:
        """Whether this process has the lock; it lapses when its holder dies. `pause`: seconds between its rounds."""
        jobs = self.fleet.jobs
        key = f"{jobs.prefix}:supervisor"
        with jobs.server.errors():
            if jobs.redis.set(key, self._name, nx=True, px=int(pause * 3000)):
                return True
            if jobs.redis.get(key) != self._name.encode():
                return False
            jobs.redis.pexpire(key, int(pause * 3000))
        return True

    def look(self) -> None:
        """One round over all running jobs."""
        self._messages.next_round()
        for job in self.fleet.jobs.running():
            try:
                self._look_at(job)
            except FleetFullError as error:  # another job's end makes room
                log.warning("supervisor: job %s: %s", job, error)
        self._discard_leftovers()
        if time.monotonic() > self._sweep_at:
            self._sweep_at = time.monotonic() + SWEEP
            self.fleet.films.sweep()

    def _look_at(self, job: str) -> None:
        try:
            view = self.fleet.jobs.view(job)
        except JobNotFoundError:
            self.fleet.jobs.cleaned(job)
            return
        if view.state != RUNNING:
            self.fleet.clean(job, view.state)
        elif view.order.deadline and view.now > view.order.deadline:
            self.fleet.late(job)
        else:
            for step, state in list(view.steps.items()):
                if self._due(view, step, state):
                    self._send_again(view, step, state)
            self.fleet.advance(job)

    def _due(self, view: JobView, step: str, state: StepState) -> bool:
        age = view.now - state.at
        if state.status == "running":
            lapsed = age > LEASE and time.monotonic() > self._trust_leases_at
            return lapsed or is_dead(state.owner)
        if state.status == "handed back":
            return view.now >= state.due
        if state.status == "sent" and age > SETTLING:
            return not self._messages.exists(QUEUES[kind_of(step)], task_id(view.order.job, step, state.sends))
        return False

    def _send_again(self, view: JobView, step: str, state: StepState) -> None:
        jobs, job = self.fleet.jobs, view.order.job
        if jobs.send(job, step, was=state):
            if state.status != "handed back":
                log.warning("job %s: %s was %s and lost; it is sent again", job, step, state.status)
            news = {"stage": kind_of(step), "again": step, "was": state.status, "owner": state.owner}
            jobs.event(job, {**news, "note": state.note})
            self.fleet.publish(job, step, view.order.priority, state.sends + 1)

    def _discard_leftovers(self) -> None:
        """Forget messages of dead workers whose step was done meanwhile, or whose job is over."""
        old = [message for message, age in self._messages.look_at_delivered().items() if age > DELIVERED]
        needless = []
        for message in old:
            job, step, _ = message.task.rsplit(".", 2)
            try:
                view = self.fleet.jobs.view(job)
            except JobNotFoundError:
                needless.append(message)
                continue
            state = view.steps.get(step.replace("-", ":"))
            if view.state != RUNNING or state is None or state.status == "done":
                needless.append(message)
        self._broker.discard(needless)
