"""The step of Celery's consumer that leaves the heartbeats which `health` reads.

It runs in the event loop that takes the tasks, so it stops when that does: a stopped or blocked main process, or
one that waits for a lost broker to come back, turns no loop.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable
from pathlib import Path
from queue import Empty
from typing import Any

from celery import bootsteps

from .app import app
from .health import BEAT, Heartbeat, heartbeat_path

log = logging.getLogger(__name__)

REQUEST = "BRPOP"
"""How kombu asks Redis for work."""


class HeartbeatStep(bootsteps.StartStopStep):  # type: ignore[misc]
    """Started anew with every connection to the broker."""

    requires = ("celery.worker.consumer.tasks:Tasks",)

    def __init__(self, consumer: Any, **options: Any) -> None:
        super().__init__(consumer, **options)
        self._timer: Any = None
        self._path: Path | None = None
        self._broker = 0.0

    def start(self, consumer: Any) -> None:
        """The connection stands: listen to the broker's answers and begin to beat."""
        self._path = heartbeat_path(consumer.hostname)
        channel = consumer.task_consumer.channel
        channel.handlers[REQUEST] = self._listening(channel.handlers[REQUEST])
        self._answered()
        self._timer = consumer.timer.call_repeatedly(BEAT, self._beat, (channel,))
        self._beat(channel)

    def stop(self, consumer: Any) -> None:
        """The connection is lost, or the worker ends."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    shutdown = stop

    def _listening(self, read: Callable[..., Any]) -> Callable[..., Any]:
        def heard(**options: Any) -> Any:
            try:
                answer = read(**options)
            except Empty:  # there is no work
                self._answered()
                raise
            self._answered()
            return answer

        return heard

    def _answered(self) -> None:
        self._broker = time.monotonic()

    def _beat(self, channel: Any) -> None:
        assert self._path is not None
        if not channel.qos.can_consume():  # all processes are busy: it does not ask
            self._answered()
        try:
            Heartbeat(os.getpid(), time.monotonic(), self._broker).write(self._path)
        except OSError as error:
            log.warning("the heartbeat cannot be written: %s", error)


app.steps["consumer"].add(HeartbeatStep)
