"""Flower as a process, with the configuration that is shipped."""

from __future__ import annotations

import base64
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.redis_server import RedisServer

ROOT = Path(__file__).parents[2]
CONFIG = ROOT / "deploy" / "flower" / "config.py"
USER, PASSWORD = "operator", "p@ss word"
START_SECONDS = 60.0


def flower_command(port: int) -> list[str]:
    celery = [sys.executable, "-m", "celery", "-A", "workers.app", "flower"]
    return [*celery, f"--conf={CONFIG}", f"--port={port}", "--address=127.0.0.1"]


def flower_environment(server: RedisServer, **more: str) -> dict[str, str]:
    environment = {**os.environ, "TALKREEL_BROKER_URL": server.url, **more}
    if server.address.ca_file:
        environment["TALKREEL_REDIS_CA"] = server.address.ca_file
    return environment


@dataclass(frozen=True)
class Flower:
    """A running Flower. `address` ends with a slash."""

    address: str
    log: Path

    def get(self, path: str, *, login: str | None = f"{USER}:{PASSWORD}") -> tuple[int, str]:
        """Status and text of a page; `login`: "user:password" or none."""
        request = urllib.request.Request(self.address + path)
        if login is not None:
            request.add_header("Authorization", "Basic " + base64.b64encode(login.encode()).decode())
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()


@contextmanager
def running_flower(server: RedisServer, folder: Path, prefix: str = "") -> Iterator[Flower]:
    """Started and answering; stopped in the end."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    flower = Flower(f"http://127.0.0.1:{port}/{prefix + '/' if prefix else ''}", folder / "flower.log")
    environment = flower_environment(server, FLOWER_PASSWORD=PASSWORD, FLOWER_URL_PREFIX=prefix)
    with flower.log.open("w") as log:
        process = subprocess.Popen(flower_command(port), env=environment, cwd=ROOT, stdout=log, stderr=log)
    try:
        end = time.monotonic() + START_SECONDS
        while not _answers(flower):
            assert process.poll() is None, flower.log.read_text()
            assert time.monotonic() < end, flower.log.read_text()
            time.sleep(0.1)
        yield flower
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _answers(flower: Flower) -> bool:
    try:
        return flower.get("healthcheck", login=None) == (200, "OK")
    except urllib.error.URLError:
        return False
