"""A fleet for tests: a Redis server and real worker processes, each with a log."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
import wave
from collections.abc import Callable, Iterator
from functools import cache
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import psutil

from pipeline import RuntimeOptions, Settings, open_pack, render
from pipeline.packs.store import DEFAULT_PACK
from pipeline.studio import Studio
from tests.redis_server import RedisServer
from tests.workers.standing import standing
from workers.client import Client, Job
from workers.connections import Connections

ROOT = Path(__file__).parents[2]
PORTRAIT = ROOT / "samples" / "portrait.png"

SETTINGS: dict[str, Any] = {"preset": "preview", "frame": "crop", "seed": 5, "fps": 5}
"""Five frames a second, where the number of frames does not matter."""

STAGES = ("sound", "portrait", "motion", "appearance", "plan", "render:0", "encode:0", "mux")
"""The steps of a short film."""

HASTE = 5
"""How many times as often as usual odd workers look for what was lost."""

WAIT = 120.0
"""Seconds within which a short job ends, or a worker starts, on a loaded machine; or else it hangs."""


class Worker:
    """One worker process with its children: `talkreel worker`, or an odd one (see `odd_worker`)."""

    def __init__(
        self,
        name: str,
        url: str,
        folder: Path,
        *,
        queues: str | None = None,
        processes: int = 1,
        odd: bool = False,
        environment: dict[str, str] | None = None,
    ) -> None:
        self.name = name
        self.log = folder / f"{name}.log"
        module = "tests.workers.odd_worker" if odd else "pipeline"
        command = [sys.executable, "-m", module, "worker", "--name", f"{name}@test", "--processes", str(processes)]
        command += ["--queues", queues] if queues else []
        variables = {**os.environ, "TALKREEL_BROKER_URL": url, "TALKREEL_THREADS": "1", **(environment or {})}
        with self.log.open("w") as log:
            self.process = subprocess.Popen(command, env=variables, stdout=log, stderr=log, cwd=ROOT)

    def wait_ready(self) -> None:
        wait_until(lambda: self.ready or not self.alive, WAIT, lambda: f"{self.name} did not start:\n{self.text}")
        assert self.ready, f"{self.name} ended:\n{self.text}"

    @property
    def ready(self) -> bool:
        return " ready." in self.text

    @property
    def alive(self) -> bool:
        return self.process.poll() is None

    @property
    def text(self) -> str:
        return self.log.read_text() if self.log.exists() else ""

    @property
    def children(self) -> list[psutil.Process]:
        """The pool's processes."""
        return psutil.Process(self.process.pid).children()

    def kill(self) -> None:
        """kill -9, the pool's processes too: as a machine that lost its power."""
        with contextlib.suppress(psutil.NoSuchProcess):
            parent = psutil.Process(self.process.pid)
            for process in [parent, *parent.children(recursive=True)]:
                with contextlib.suppress(psutil.NoSuchProcess):
                    process.kill()
        self.process.wait(10)

    def terminate(self) -> None:
        self.process.send_signal(signal.SIGTERM)

    def stop(self) -> int:
        """SIGTERM, and wait for it."""
        if self.alive:
            self.terminate()
        return self.process.wait(60)


class TestFleet:
    """Servers and workers; `with` stops whatever still runs. Odd workers are held by `hold`.

    Args:
        server: for messages and artifacts. artifacts: a second one for these.
        warm: odd workers open their models when they start, as others do.
    """

    __test__ = False

    def __init__(
        self, folder: Path, server: RedisServer, artifacts: RedisServer | None = None, warm: bool = False
    ) -> None:
        self.folder = folder
        self.server = server
        self.artifacts = artifacts or server
        self.warm = warm
        self.workers: list[Worker] = []
        self._holds = folder / "holds"
        self._holds.mkdir()

    def start(self, name: str, *, ready: bool = True, environment: dict[str, str] | None = None, **how: Any) -> Worker:
        variables = {"TALKREEL_TEST_HOLDS": str(self._holds), "TALKREEL_ARTIFACTS_URL": self.artifacts.url}
        variables |= {"TALKREEL_TEST_HASTE": str(HASTE), "TALKREEL_TEST_COLD": "" if self.warm else "1"}
        variables |= environment or {}
        worker = Worker(name, self.server.url, self.folder, environment=variables, **how)
        self.workers.append(worker)
        if ready:
            worker.wait_ready()
        return worker

    def client(self) -> Client:
        return Client(connections=Connections(self.server.address, self.artifacts.address))

    def submit(self, voice: Path, **changes: object) -> Job:
        return self.client().submit(PORTRAIT, voice, **{**SETTINGS, **changes})

    def empty(self) -> None:
        """Forget everything, as artifacts of other tests spare work that this one wants done."""
        for server in (self.server, self.artifacts):
            with server.client() as redis:
                redis.flushall()

    @property
    def followed(self) -> bool:
        """Whether a client waits for a job's events."""
        with self.artifacts.client() as redis:
            return any(client["cmd"].startswith("xread") for client in redis.client_list())

    def hold(self, name: str) -> None:
        """Let the step wait, "hold-STEP" before its work, "mid-STEP" during it; "block-STEP" as if it hung; or a
        model, "endless-run", until it is told to end."""
        (self._holds / name).touch()

    def let_go(self, name: str) -> None:
        (self._holds / name).unlink(missing_ok=True)

    @property
    def holds(self) -> list[str]:
        """What lets steps wait at present."""
        return sorted(path.name for path in self._holds.iterdir() if not path.name.startswith("at-"))

    def held(self, name: str) -> list[int]:
        """The processes that are held there."""
        return [int(path.suffix[1:]) for path in self._holds.glob(f"at-{name}.*")]

    def wait_held(self, name: str, after: int | None = None) -> int:
        """Wait until a process is held there; its id. `after`: one that was killed there, and could not say so."""
        (self._holds / f"at-{name}.{after}").unlink(missing_ok=True)
        found: list[int] = []

        def reached() -> bool:
            found[:] = self.held(name)
            return bool(found)

        wait_until(reached, WAIT, lambda: f"{name} was never reached\n{self.standing()}")
        return found[0]

    def worker_of(self, pid: int) -> Worker:
        """The worker whose pool this process belongs to."""
        return next(w for w in self.workers if w.alive and pid in [child.pid for child in w.children])

    def close(self) -> None:
        for worker in self.workers:
            if worker.alive:
                worker.kill()

    @property
    def logs(self) -> str:
        """All that the workers said."""
        return "\n".join(worker.text for worker in self.workers)

    def standing(self) -> str:
        """Who is held where, how far the jobs are, and what the workers said last: for what a failed test says."""
        return standing(self)


@contextlib.contextmanager
def running_fleet(
    folder: Path, *names: str, persistent: bool = False, two_servers: bool = False, warm: bool = False, **how: Any
) -> Iterator[TestFleet]:
    """A fleet with a server of its own, or two, and workers of these names."""
    with contextlib.ExitStack() as stack:
        servers = [stack.enter_context(RedisServer(persistent=persistent)) for _ in range(2 if two_servers else 1)]
        fleet = TestFleet(folder, *servers, warm=warm)
        try:
            for name in names:
                fleet.start(name, ready=False, **how)
            for worker in fleet.workers:
                worker.wait_ready()
            yield fleet
        finally:
            fleet.close()


def wait_until(condition: Callable[[], bool], seconds: float, message: str | Callable[[], str]) -> None:
    """Wait for a condition; AssertionError when it does not come true, with the message or what it says then."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise AssertionError(message if isinstance(message, str) else message())
        time.sleep(0.02)


def wait_nothing_left(fleet: TestFleet) -> None:
    """Wait until the fleet holds what it may hold once all jobs are over."""
    wait_until(lambda: not any(leftovers(fleet).values()), WAIT, lambda: f"{leftovers(fleet)}\n{fleet.standing()}")


def leftovers(fleet: TestFleet) -> dict[str, object]:
    """What should not be there once all jobs are over: keys of ours without a lifetime, messages, jobs to clean."""
    with fleet.server.client() as redis:
        ours = [key for key in redis.keys("*") if not key.startswith(b"_kombu") and b"pidbox" not in key]
        queues = [key for key in ours if redis.type(key) == b"list"]
        return {
            "no lifetime": [key for key in ours if redis.ttl(key) == -1 and not key.startswith(b"unacked")],
            "queues": {key: redis.llen(key) for key in queues},
            "unacknowledged": redis.hlen("unacked"),
            "jobs": redis.zrange("fleet:running", 0, -1),
        }


def cut_voice(path: Path, seconds: float) -> Path:
    """The sample voice, repeated or cut to this length."""
    with wave.open(str(ROOT / "samples" / "voice.wav")) as sample:
        rate, frames = sample.getframerate(), sample.readframes(sample.getnframes())
    wanted = round(seconds * rate) * 2
    with wave.open(str(path), "wb") as out:
        out.setnchannels(1)
        out.setsampwidth(2)
        out.setframerate(rate)
        out.writeframes((frames * (wanted // len(frames) + 1))[:wanted])
    return path


@cache
def _studio(pack: str) -> Studio:
    return Studio(open_pack(pack), RuntimeOptions(1))


@cache
def _film(voice: bytes, pack: str, settings: str) -> bytes:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "film.webm"
        render(PORTRAIT, BytesIO(voice), path, Settings.from_json(json.loads(settings)), studio=_studio(pack))
        return path.read_bytes()


def made_here(voice: Path, *, pack: str = DEFAULT_PACK, **changes: object) -> bytes:
    """The film as one process makes it; made once, whatever test asks for it."""
    settings = Settings.from_json({**Settings().to_json(), **SETTINGS, **changes})
    return _film(voice.read_bytes(), pack, json.dumps(settings.to_json(), sort_keys=True))
