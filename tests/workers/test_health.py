"""The health check, on real workers: alone, busy, stopped, cut off, beside others."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.redis_server import RedisServer
from tests.workers.fleet import TestFleet, cut_voice, running_fleet, wait_until
from workers.health import BEAT, STALLED, Heartbeat, complaint, full_name, heartbeat_path

ROOT = Path(__file__).parents[2]
LONG = STALLED + 45.0


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestFleet]:
    """Two workers, so that another one is there to answer."""
    with running_fleet(tmp_path_factory.mktemp("health"), "sick", "well", odd=True) as made:
        yield made


def check(name: str) -> tuple[int, str]:
    """The check as Docker runs it: in a process of its own."""
    command = [sys.executable, "-m", "workers.health", name]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    return done.returncode, done.stdout + done.stderr


def healthy(name: str) -> bool:
    return complaint(name) is None


def test_idle_workers_are_healthy(fleet: TestFleet) -> None:
    for name in ("sick@test", "well@test"):
        wait_until(lambda name=name: healthy(name), LONG, fleet.standing)  # type: ignore[misc]
        assert check(name) == (0, "healthy\n")


def test_the_command_says_the_same(fleet: TestFleet) -> None:
    for name, code in (("well@test", 0), ("nobody@test", 1)):
        command = [sys.executable, "-m", "pipeline", "health", "--worker", name]
        done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
        assert done.returncode == code, done.stderr
    assert "nobody@test has left no heartbeat" in done.stdout


def test_a_stopped_worker_is_not_helped_by_another(fleet: TestFleet) -> None:
    sick = fleet.workers[0].process
    sick.send_signal(signal.SIGSTOP)
    try:
        wait_until(lambda: not healthy("sick@test"), LONG, "a stopped worker passes for healthy")
        code, text = check("sick@test")
        assert code == 1
        assert "sick@test" in text
        assert check("well@test") == (0, "healthy\n")
    finally:
        sick.send_signal(signal.SIGCONT)
    wait_until(lambda: healthy("sick@test"), LONG, fleet.standing)


def test_a_worker_is_healthy_while_one_task_keeps_it_busy(fleet: TestFleet, tmp_path: Path) -> None:
    """Its pool process is stopped in mid-task: for the main process, a task that never ends."""
    fleet.hold("hold-motion")
    job = fleet.submit(cut_voice(tmp_path / "voice.wav", 1), seed=21)
    pid = fleet.wait_held("hold-motion")
    worker = fleet.worker_of(pid)
    name = f"{worker.name}@test"
    os.kill(pid, signal.SIGSTOP)
    try:
        stopped = Heartbeat.read(heartbeat_path(name))
        assert stopped is not None

        def beats_on() -> bool:
            """Both of its clocks have gone on for some beats, with no process free to take a task."""
            beat = Heartbeat.read(heartbeat_path(name))
            return beat is not None and min(beat.loop, beat.broker) > stopped.loop + 3 * BEAT

        wait_until(beats_on, LONG, lambda: f"a busy worker leaves no heartbeats\n{fleet.standing()}")
        assert check(name) == (0, "healthy\n")
    finally:
        os.kill(pid, signal.SIGCONT)
        fleet.let_go("hold-motion")
        job.cancel()


def test_a_worker_whose_broker_went_silent_or_away_is_not_healthy_until_it_is_back(tmp_path: Path) -> None:
    with RedisServer() as server:
        fleet = TestFleet(tmp_path, server)
        try:
            fleet.start("cut")
            wait_until(lambda: healthy("cut@test"), LONG, fleet.standing)
            os.kill(server.pid, signal.SIGSTOP)
            wait_until(lambda: not healthy("cut@test"), LONG, "a silent broker passes unnoticed")
            os.kill(server.pid, signal.SIGCONT)
            wait_until(lambda: healthy("cut@test"), LONG, fleet.standing)
            server.stop()
            wait_until(lambda: not healthy("cut@test"), LONG, "a broker that is away passes unnoticed")
            server.start()
            wait_until(lambda: healthy("cut@test"), LONG, fleet.standing)
        finally:
            fleet.close()


def test_names_are_those_of_celery() -> None:
    host = os.uname().nodename
    assert full_name("render@%h") == f"render@{host}"
    assert full_name("alone") == "celery@alone"


def test_a_heartbeat_from_before_the_machine_started_does_not_count(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    Heartbeat(1, loop=5000.0, broker=5000.0).write(heartbeat_path("old@test"))
    assert complaint("old@test", now=5001.0) is None
    assert "no heartbeat for 20 s" in str(complaint("old@test", now=5020.0))
    assert "left no heartbeat" in str(complaint("old@test", now=30.0))


def test_a_folder_of_somebody_else_is_not_used(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / f"talkreel-{os.getuid()}").symlink_to(tmp_path / "elsewhere")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert "is not ours" in str(complaint("any@test"))
