"""The fleet's servers: two of them, and TLS with user, password and CA file, for client, worker and Flower."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

from tests.redis_server import Certificates, RedisServer
from tests.workers.fleet import PORTRAIT, SETTINGS, WAIT, cut_voice, made_here, wait_until
from workers.client import Client
from workers.connections import Connections

ROOT = Path(__file__).parents[2]


def run_worker(environ: dict[str, str], log: Path) -> subprocess.Popen[bytes]:
    """A worker that finds its servers in the environment alone."""
    command = [sys.executable, "-m", "pipeline", "worker", "--name", "servers@test"]
    with log.open("w") as out:
        process = subprocess.Popen(command, env={**os.environ, **environ}, stdout=out, stderr=out)
    wait_until(lambda: " ready." in log.read_text(), WAIT, log.read_text)
    return process


def film_made_with(environ: dict[str, str], folder: Path) -> None:
    """A short film, by a client and a worker that know the servers from the environment alone."""
    voice = cut_voice(folder / "voice.wav", 1)
    worker = run_worker(environ, folder / "worker.log")
    try:
        client = Client(connections=Connections.read(environ=environ))
        job = client.submit(PORTRAIT, voice, **SETTINGS)
        job.wait(timeout=WAIT)
        assert job.result() == made_here(voice)
    finally:
        worker.terminate()
        worker.wait(60)


def test_messages_and_artifacts_on_two_servers(tmp_path: Path) -> None:
    with RedisServer() as broker, RedisServer(options={"maxmemory": "200mb"}) as artifacts:
        film_made_with({"TALKREEL_BROKER_URL": broker.url, "TALKREEL_ARTIFACTS_URL": artifacts.url}, tmp_path)
        with broker.client() as messages, artifacts.client() as store:
            assert [key for key in messages.keys("*") if key.startswith((b"talkreel:", b"fleet:job"))] == []
            assert [key for key in store.keys("*") if b"kombu" in key or key in (b"render", b"media")] == []
            assert any(key.startswith(b"talkreel:artifact:film") for key in store.keys("*"))


def test_client_worker_and_flower_over_tls(tls_redis: RedisServer, certificates: Certificates, tmp_path: Path) -> None:
    with tls_redis.client() as client:
        client.flushall()
    environ = {"TALKREEL_BROKER_URL": tls_redis.url, "TALKREEL_REDIS_CA": str(certificates.ca)}
    film_made_with(environ, tmp_path)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "celery", "-A", "workers.app", "flower", f"--port={port}"]
    command += [f"--conf={ROOT / 'deploy/flower/config.py'}"]
    log = tmp_path / "flower.log"
    with log.open("w") as out:
        secret = {"FLOWER_USER": "operator", "FLOWER_PASSWORD": "let me in"}
        flower = subprocess.Popen(command, env={**os.environ, **environ, **secret}, stdout=out, stderr=out)
    try:

        def refused() -> bool:
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/api/workers", timeout=5)
            except urllib.error.HTTPError as error:
                return error.code == 401
            except OSError:
                return False
            raise AssertionError("Flower answered without a password")

        wait_until(refused, WAIT, log.read_text)
        wait_until(lambda: "Connected to rediss://" in log.read_text(), WAIT, log.read_text)
    finally:
        flower.kill()
        flower.wait(30)
