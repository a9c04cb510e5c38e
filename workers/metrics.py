"""Figures of the whole fleet for Prometheus, read from what Redis knows of its jobs and queues.

One process serves them for a fleet (`talkreel metrics`), not every worker: what they are read from is common to
all workers, which would each report the same jobs and queues again. Counters begin at zero with that process, as
Prometheus expects; what ended before counts in no counter.
"""

from __future__ import annotations

import logging
import math
import signal
import threading
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Metric, start_http_server
from prometheus_client.registry import Collector

from pipeline.errors import SettingsError

from .broker import UNACKED, Broker
from .canvas import QUEUES as QUEUE_OF
from .canvas import kind_of
from .config import QUEUES
from .connections import Connections, RedisServer
from .errors import FleetError, JobNotFoundError
from .job_view import STALLED, JobView, StepState
from .jobs import ENDED, RUNNING, Jobs

log = logging.getLogger(__name__)

STEP_SECONDS = (0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 40, 80, 160, 320, 600)
"""Upper bounds of the histogram of a step's seconds; the last is the longest that a task may take."""


@dataclass
class _Seen:
    """What was counted of a job that runs."""

    steps: dict[str, StepState] = field(default_factory=dict)
    frames: int = 0


class FleetCollector(Collector):
    """Reads the fleet whenever it is asked. Safe to be asked by several threads."""

    def __init__(self, connections: Connections) -> None:
        self._servers = {"broker": connections.broker, "artifacts": connections.artifacts}
        self._broker = Broker(connections.broker)
        self._jobs = Jobs(connections.artifacts)
        self._lock = threading.Lock()
        self._running: dict[str, _Seen] = {}
        self._ended: dict[str, str] | None = None  # state by job; None: nothing was looked at yet

        def gauge(name: str, text: str, *labels: str) -> Gauge:
            return Gauge(f"talkreel_{name}", text, labels, registry=None)

        def counter(name: str, text: str, *labels: str) -> Counter:
            return Counter(f"talkreel_{name}", text, labels, registry=None)

        self.up = gauge("redis_up", "Whether a Redis server answers", "server")
        self.memory = gauge("redis_memory_bytes", "Memory in use", "server")
        self.limit = gauge("redis_memory_limit_bytes", "Memory that may be used; 0: no limit", "server")
        self.queue = gauge("queue_messages", "Messages that wait", "queue")
        self.wait = gauge("queue_oldest_wait_seconds", "Age of the step that has waited longest", "queue")
        self.unacked = gauge("messages_unacknowledged", "Messages that workers have; NaN: not known")
        self.jobs = gauge("jobs", "Jobs that the fleet remembers", "state")
        self.steps = gauge("steps", "Steps of running jobs", "step", "status")
        self.stalled = gauge("steps_stalled", f"Steps of running jobs that got no further for {STALLED:g} s", "step")
        self.submitted = counter("jobs_submitted", "Jobs seen for the first time")
        self.ends = counter("jobs_ended", "Jobs that ended", "state")
        self.frames = counter("frames", "Key frames rendered")
        self.resends = counter("steps_sent_again", "Steps whose message was sent again", "step")
        self.restarts = counter("steps_begun_again", "Steps that were begun again", "step")
        self.stages = counter("stage_seconds", "Seconds that workers spent in a stage", "stage")
        self.took = Histogram(
            "talkreel_step_seconds", "Seconds a step took", ("step",), buckets=STEP_SECONDS, registry=None
        )
        for state in ENDED:
            self.ends.labels(state)
        self._gauges = (self.queue, self.memory, self.limit, self.wait, self.jobs, self.steps, self.stalled)
        self._all = (
            *(self.up, self.unacked, *self._gauges),
            *(self.submitted, self.ends, self.frames, self.resends, self.restarts, self.stages, self.took),
        )

    def collect(self) -> Iterable[Metric]:
        """All figures as they stand now. A server that does not answer has no figures but `redis_up` 0."""
        with self._lock:
            self.look()
            return [metric for source in self._all for metric in source.collect()]

    def look(self) -> None:
        """Read both servers once."""
        for source in self._gauges:
            source.clear()
        self.unacked.set(math.nan)
        for name, server in self._servers.items():
            self._read_server(name, server)
        try:
            for queue, length in self._broker.lengths().items():
                self.queue.labels(queue).set(length)
            with self._broker.server.errors():
                self.unacked.set(self._broker.redis.hlen(UNACKED))
        except FleetError as error:
            log.warning("%s", error)
        try:
            self._read_jobs()
        except FleetError as error:
            log.warning("%s", error)

    def _read_server(self, name: str, server: RedisServer) -> None:
        client: Any = self._broker.redis if name == "broker" else self._jobs.redis
        try:
            with server.errors():
                facts = client.info("memory")
        except FleetError:
            self.up.labels(name).set(0)
            return
        self.up.labels(name).set(1)
        self.memory.labels(name).set(facts["used_memory"])
        self.limit.labels(name).set(facts["maxmemory"])

    def _read_jobs(self) -> None:
        jobs = self._jobs.all()
        first, ended = self._ended is None, {job: state for job, state in (self._ended or {}).items() if job in jobs}
        views = []
        for job in jobs:
            if job in ended:
                continue
            try:
                view, frames = self._jobs.view(job), self._jobs.counts(job).get("frames", 0)
            except JobNotFoundError:  # forgotten meanwhile
                continue
            views.append(view)
            seen = self._running.get(job)
            if seen is None:
                seen = self._running[job] = _Seen()
                self.submitted.inc(0 if first else 1)
            if not first:
                self._count(view, seen, frames)
            seen.steps, seen.frames = dict(view.steps), frames
            if view.state in ENDED:
                ended[job] = view.state
                self.ends.labels(view.state).inc(0 if first else 1)
        self._ended = ended
        self._running = {v.order.job: self._running[v.order.job] for v in views if v.state == RUNNING}
        self._gauge([view for view in views if view.state == RUNNING])

    def _count(self, view: JobView, seen: _Seen, frames: int) -> None:
        """Add what happened to a job since it was seen last."""
        self.frames.inc(max(0, frames - seen.frames))
        for step, state in view.steps.items():
            # A step that was undone begins anew, and so does its count.
            before = seen.steps.get(step) or StepState("")
            if before.sends > state.sends:
                before = StepState("")
            kind = kind_of(step)
            self.resends.labels(kind).inc(max(0, state.sends - max(1, before.sends)))
            self.restarts.labels(kind).inc(max(0, state.starts - max(1, before.starts)))
            if state.status == "done" and before.status != "done":
                self.took.labels(kind).observe(state.result.get("took", 0))
                for stage, record in state.result.get("report", {}).items():
                    self.stages.labels(stage).inc(record["seconds"])

    def _gauge(self, running: list[JobView]) -> None:
        """What stands now."""
        for end in ENDED:
            self.jobs.labels(end).set(sum(found == end for found in (self._ended or {}).values()))
        self.jobs.labels(RUNNING).set(len(running))
        waits = dict.fromkeys(QUEUES, 0.0)
        for view in running:
            for step in view.stalled():
                self.stalled.labels(kind_of(step)).inc()
            for step, state in view.steps.items():
                kind, age = kind_of(step), view.now - state.at
                self.steps.labels(kind, state.status).inc()
                if state.status == "sent":
                    waits[QUEUE_OF[kind]] = max(waits[QUEUE_OF[kind]], age)
        for queue, seconds in waits.items():
            self.wait.labels(queue).set(seconds)


def serve(connections: Connections, address: str, port: int) -> None:
    """Serve at http://ADDRESS:PORT/metrics until SIGTERM or Ctrl-C. Raises SettingsError: nobody can listen there."""
    registry = CollectorRegistry()
    registry.register(FleetCollector(connections))
    list(registry.collect())  # what there is now is where the counters begin
    try:
        server, _ = start_http_server(port, address, registry)
    except OSError as error:
        raise SettingsError(f"{address}:{port} cannot be listened on ({error.strerror}); give another --port") from None
    print(f"metrics at http://{address}:{server.server_port}/metrics", flush=True)
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    try:
        stop.wait()
    finally:
        server.shutdown()
