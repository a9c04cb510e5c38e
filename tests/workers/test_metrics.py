"""The fleet's figures, asked for over HTTP while a real worker makes a film."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from pipeline.cli.main import main
from tests.redis_server import RedisServer
from tests.workers.fleet import WAIT, TestFleet, wait_until

ROOT = Path(__file__).parents[2]


class Exporter:
    """`talkreel metrics` as a process."""

    def __init__(self, url: str) -> None:
        command = [sys.executable, "-m", "pipeline", "metrics", "--port", "0", "--url", url]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT)
        assert self.process.stdout is not None
        self.address = self.process.stdout.readline().strip().removeprefix("metrics at ")

    def read(self) -> dict[str, float]:
        """Samples by name and labels: 'talkreel_jobs{state=done}'."""
        with urllib.request.urlopen(self.address, timeout=60) as answer:
            text = answer.read().decode()
        samples = {}
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                labels = ",".join(f"{name}={value}" for name, value in sorted(sample.labels.items()))
                samples[sample.name + (f"{{{labels}}}" if labels else "")] = sample.value
        return samples

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        self.process.communicate(timeout=30)
        return self.process.returncode


def waiting(figures: Exporter) -> float:
    """Messages in all queues."""
    return sum(value for name, value in figures.read().items() if name.startswith("talkreel_queue_messages"))


@contextmanager
def exporter(server: RedisServer) -> Iterator[Exporter]:
    made = Exporter(server.url)
    try:
        yield made
    finally:
        made.process.kill()
        made.process.communicate()


def test_a_port_that_is_taken_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken, RedisServer() as server:
        port = taken.getsockname()[1]
        assert main(["metrics", "--port", str(port), "--url", server.url]) == 2
    assert f"127.0.0.1:{port} cannot be listened on (Address already in use); give another" in capsys.readouterr().err


def test_figures_of_a_job_from_its_queue_to_its_end(tmp_path: Path) -> None:
    portrait, voice = ROOT / "samples" / "portrait.png", ROOT / "samples" / "voice.wav"
    settings = {"preset": "preview", "frame": "crop"}
    with RedisServer() as server:
        fleet = TestFleet(tmp_path, server)
        try:
            with exporter(server) as figures:
                job = fleet.client().submit(portrait, voice, **settings)
                queued = figures.read()
                assert queued["talkreel_jobs{state=running}"] == 1
                assert queued["talkreel_jobs_submitted_total"] == 1
                assert queued["talkreel_queue_messages{queue=media}"] == 2
                assert queued["talkreel_queue_messages{queue=render}"] == 0
                assert queued["talkreel_steps{status=sent,step=sound}"] == 1
                assert queued["talkreel_redis_up{server=broker}"] == 1
                assert queued["talkreel_redis_memory_bytes{server=artifacts}"] > 0
                waited = "talkreel_queue_oldest_wait_seconds{queue=media}"
                wait_until(lambda: figures.read()[waited] > queued[waited], WAIT, "the wait does not grow")

                fleet.hold("mid-render:0")
                fleet.start("one", odd=True)
                os.kill(fleet.wait_held("mid-render:0"), signal.SIGKILL)
                fleet.let_go("mid-render:0")
                report = job.wait(timeout=WAIT)
                done = figures.read()
                assert done["talkreel_jobs{state=running}"] == 0
                assert done["talkreel_jobs{state=done}"] == 1
                assert done["talkreel_jobs_ended_total{state=done}"] == 1
                assert done["talkreel_jobs_ended_total{state=failed}"] == 0
                assert done["talkreel_frames_total"] == report["frames"]["key_frames"]
                assert done["talkreel_step_seconds_count{step=mux}"] == 1
                assert done["talkreel_step_seconds_count{step=render}"] > 1
                generator = done["talkreel_stage_seconds_total{stage=generator}"]
                assert generator == pytest.approx(report["stages"]["generator"]["seconds"], rel=0.01)
                again = [done.get(f"talkreel_steps_{what}_total{{step=render}}", 0) for what in
                         ("sent_again", "begun_again")]  # fmt: skip
                assert sum(again) >= 1
                wait_until(lambda: waiting(figures) == 0, WAIT, fleet.standing)  # what was sent twice may be left
                assert not any(name.startswith("talkreel_steps_stalled") for name in done)

            # A new exporter sees the same job and counts nothing twice.
            with exporter(server) as figures:
                later = figures.read()
                assert later["talkreel_jobs{state=done}"] == 1
                assert later["talkreel_jobs_ended_total{state=done}"] == 0
                assert later["talkreel_frames_total"] == 0
                server.stop(keep_data=False)
                away = figures.read()
                assert away["talkreel_redis_up{server=broker}"] == 0
                assert "talkreel_jobs{state=done}" not in away
                server.start()
                assert figures.read()["talkreel_redis_up{server=broker}"] == 1
                assert figures.stop() == 0
        finally:
            fleet.close()
