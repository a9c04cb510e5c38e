"""The same fleet with docker-compose 1.29, and with its passwords in files."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.deploy.compose import SERVICES, Compose, Stack, running
from tests.deploy.shell import sh

pytestmark = pytest.mark.docker

NAMES = ("TALKREEL_BROKER_PASSWORD", "TALKREEL_ARTIFACTS_PASSWORD", "FLOWER_PASSWORD")


@pytest.fixture
def stack(fleet: Stack, v1: Compose, tmp_path: Path) -> Iterator[Stack]:
    paths = {name: tmp_path / name.lower() for name in NAMES}
    for name, path in paths.items():
        path.write_text(f"secret of {name}\n")
        path.chmod(0o644)
    given = {**dict.fromkeys(NAMES, ""), **{f"{name}_FILE": str(path) for name, path in paths.items()}}
    files = ("compose.yaml", "compose.secrets.yaml")
    with running(replace(fleet, composer=v1, files=files).with_environment(**given)) as stack:
        yield stack


def test_a_film_with_passwords_from_files(stack: Stack) -> None:
    settings = ["--preset", "preview", "--seed", "5"]
    stack.client("submit", "portrait.png", "short.wav", *settings, "--wait", "--quiet", "-o", "secret.webm")
    assert (stack.folder / "secret.webm").stat().st_size > 10_000
    for service in SERVICES:
        for container in stack.containers(service):
            told = json.loads(sh("docker", "inspect", container))[0]["Config"]["Env"]
            assert not any("secret of" in variable for variable in told), service
