"""Flower's shipped configuration: no password, no Flower; and the fleet's Redis over TLS."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.browser.flower import flower_command, flower_environment, running_flower
from tests.redis_server import RedisServer, make_certificates
from workers.app import create_app
from workers.connections import Connections
from workers.fleet import Fleet


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({}, "does not start without a password"),
        ({"FLOWER_PASSWORD": ""}, "does not start without a password"),
        ({"FLOWER_PASSWORD_FILE": "/nowhere/password"}, "cannot be read"),
    ],
)
def test_flower_does_not_start_without_a_password(given: dict[str, str], reason: str) -> None:
    with RedisServer() as server:
        environment = {
            name: value for name, value in flower_environment(server).items() if not name.startswith("FLOWER_")
        }
        done = subprocess.run(
            flower_command(0), env={**environment, **given}, capture_output=True, text=True, timeout=60
        )
    assert done.returncode != 0
    assert reason in done.stderr


def test_flower_reads_a_broker_over_tls(tmp_path: Path) -> None:
    certificates = make_certificates(tmp_path)
    with RedisServer(users={"fleet": "p@ss/word:1"}, certificates=certificates) as server:
        connections = Connections(server.address, server.address)
        Fleet(connections, create_app(connections)).app.send_task("talkreel.none", queue="media")
        with running_flower(server, tmp_path) as flower:
            code, text = flower.get("api/queues/length")
            log = flower.log.read_text()
    assert code == 200, log
    lengths = {queue["name"]: queue["messages"] for queue in json.loads(text)["active_queues"]}
    assert lengths["media"] == 1
    assert "p@ss/word:1" not in log
    assert "p%40ss" not in log
