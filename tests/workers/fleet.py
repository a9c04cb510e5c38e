"""A fleet for tests: a Redis server and real worker processes, each with a log."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil

from tests.redis_server import RedisServer
from workers.client import Client, Job
from workers.connections import Connections

START_SECONDS = 60.0


class Worker:
    """One `talkreel worker` process with its children."""

    def __init__(self, name: str, url: str, folder: Path, *, queues: str | None = None, processes: int = 1) -> None:
        self.name = name
        self.log = folder / f"{name}.log"
        command = [sys.executable, "-m", "pipeline", "worker", "--name", f"{name}@test", "--processes", str(processes)]
        command += ["--queues", queues] if queues else []
        environment = {**os.environ, "TALKREEL_BROKER_URL": url, "TALKREEL_THREADS": "1"}
        with self.log.open("w") as log:
            self.process = subprocess.Popen(command, env=environment, stdout=log, stderr=log)

    def wait_ready(self) -> None:
        wait_until(lambda: " ready." in self.text, START_SECONDS, f"{self.name} did not start:\n{self.text}")

    @property
    def text(self) -> str:
        return self.log.read_text() if self.log.exists() else ""

    def kill(self) -> None:
        """kill -9, the pool's processes too: as a machine that lost its power."""
        with contextlib.suppress(psutil.NoSuchProcess):
            parent = psutil.Process(self.process.pid)
            for process in [*parent.children(recursive=True), parent]:
                with contextlib.suppress(psutil.NoSuchProcess):
                    process.kill()
        self.process.wait(10)

    def kill_child(self) -> bool:
        """kill -9 of one pool process, as the system does when memory runs out."""
        children = psutil.Process(self.process.pid).children()
        for child in children:
            child.kill()
        return bool(children)

    def stop(self) -> int:
        """SIGTERM, and wait for it."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        return self.process.wait(60)


class TestFleet:
    """Servers and workers; `with` stops whatever still runs."""

    __test__ = False

    def __init__(self, folder: Path, server: RedisServer) -> None:
        self.folder = folder
        self.server = server
        self.workers: list[Worker] = []

    def start(self, name: str, *, queues: str | None = None, processes: int = 1, ready: bool = True) -> Worker:
        worker = Worker(name, self.server.url, self.folder, queues=queues, processes=processes)
        self.workers.append(worker)
        if ready:
            worker.wait_ready()
        return worker

    def client(self) -> Client:
        return Client(connections=Connections.read(self.server.url))

    def close(self) -> None:
        for worker in self.workers:
            if worker.process.poll() is None:
                worker.kill()

    @property
    def logs(self) -> str:
        return "\n".join(f"--- {worker.name}\n{worker.text[-4000:]}" for worker in self.workers)


@contextlib.contextmanager
def running_fleet(folder: Path, *names: str, persistent: bool = False) -> Iterator[TestFleet]:
    """A fleet with a server of its own and workers of these names."""
    with RedisServer(persistent=persistent) as server:
        fleet = TestFleet(folder, server)
        try:
            for name in names:
                fleet.start(name, ready=False)
            for worker in fleet.workers:
                worker.wait_ready()
            yield fleet
        finally:
            fleet.close()


def wait_until(condition: Callable[[], bool], seconds: float, message: str) -> None:
    """Wait for a condition; AssertionError with the message when it does not come true."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, message
        time.sleep(0.02)


def step_running(job: Job, kind: str) -> bool:
    """Whether a step of this kind is at work."""
    steps = job.fleet.jobs.view(job.id).steps
    return any(name.partition(":")[0] == kind and state.status == "running" for name, state in steps.items())
