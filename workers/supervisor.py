"""Finds what was lost: steps whose worker died, steps whose message is gone, jobs whose time is up.

Celery hands out again what a lost worker had not acknowledged, but only after the visibility timeout, and
knows nothing of messages that went down with the broker. So every worker runs this in a thread of its main
process; a lock lets one of them look at a time.
"""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

from .canvas import QUEUES, kind_of
from .fleet import Fleet, queue_lists, task_id
from .jobs import LEASE, JobView, StepState

log = logging.getLogger(__name__)

EVERY = 2.0
"""Seconds between two looks."""

SETTLING = 3.0
"""Seconds that a sent step may be on its way into the broker or from there into a worker."""

HAND_BACK = 2.0
"""Seconds until a step that was handed back is sent again, doubled with each time."""

LONGEST_PAUSE = 60.0


class Supervisor:
    """Looks after all jobs of a fleet. `look` is one round; `start` runs rounds in a thread."""

    def __init__(self, fleet: Fleet) -> None:
        self.fleet = fleet
        self._name = uuid4().hex
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        self._thread = threading.Thread(target=self._run, name="supervisor", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()

    def _run(self) -> None:
        while not self._stop.wait(EVERY):
            try:
                if self._locked():
                    self.look()
            except Exception as error:  # Redis away: the next round will do
                log.warning("supervisor: %s", error)

    def _locked(self) -> bool:
        """Whether this process has the lock; it lapses when its holder dies."""
        jobs = self.fleet.jobs
        key = f"{jobs.prefix}:supervisor"
        if jobs.redis.set(key, self._name, nx=True, px=int(EVERY * 3000)):
            return True
        if jobs.redis.get(key) != self._name.encode():
            return False
        jobs.redis.pexpire(key, int(EVERY * 3000))
        return True

    def look(self) -> None:
        """One round over all running jobs."""
        messages: dict[str, set[str]] = {}
        for job in list(self.fleet.jobs.running()):
            view = self.fleet.jobs.view(job)
            if view.order.deadline and view.now > view.order.deadline:
                self.fleet.late(job)
                continue
            for step, state in list(view.steps.items()):
                if self._due(view, step, state, messages):
                    self._send_again(view, step, state)
            self.fleet.advance(job)

    def _due(self, view: JobView, step: str, state: StepState, messages: dict[str, set[str]]) -> bool:
        age = view.now - state.at
        if state.status == "running":
            return age > LEASE
        if state.status == "handed back":
            return age > min(HAND_BACK * 2 ** min(state.sends - 1, 10), LONGEST_PAUSE)
        if state.status == "sent" and age > SETTLING:
            queue = QUEUES[kind_of(step)]
            if queue not in messages:
                messages[queue] = set(self._messages(queue))
            return task_id(view.order.job, step, state.sends) not in messages[queue]
        return False

    def _send_again(self, view: JobView, step: str, state: StepState) -> None:
        jobs, job = self.fleet.jobs, view.order.job
        if jobs.send(job, step, was=state.status, sends=state.sends):
            log.warning("job %s: %s was %s and lost; it is sent again", job, step, state.status)
            jobs.event(job, {"stage": kind_of(step), "again": step, "was": state.status, "owner": state.owner})
            self.fleet.publish(job, step, view.order.priority, state.sends + 1)

    def _messages(self, queue: str) -> Iterator[str]:
        """Ids of the messages that wait in a queue, or that a worker has and has not acknowledged."""
        broker: Any = self.fleet.connections.broker.client()
        for name in queue_lists(queue):
            for text in broker.lrange(name, 0, -1):
                yield json.loads(text)["headers"]["id"]
        for text in broker.hvals("unacked"):
            yield json.loads(text)[0]["headers"]["id"]
