"""Both Composes, and the fleet of deploy/compose.yaml under one of them."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from tests.deploy.debian import fetch
from tests.deploy.engine import ROOT
from tests.deploy.shell import sh, wait_for

SERVICES = ("broker", "artifacts", "media", "render", "encode", "flower", "metrics")
PROJECT = "talkreeltest"
PORTS = {"FLOWER_ADDRESS": "127.0.0.1:15555", "METRICS_ADDRESS": "127.0.0.1:19540"}
LIMITS = {"RENDER_CORES": "1", "ENCODE_CORES": "1", "ARTIFACTS_MEMORY": "1gb", "ARTIFACTS_LIMIT": "2g"}
RENDERERS = 3

V2_SUITE = "trixie"
"""Debian's first with Compose v2."""

REDIS_CLI = 'REDISCLI_AUTH="${PASSWORD:-$(cat "$PASSWORD_FILE")}" exec redis-cli "$@"'


@dataclass(frozen=True)
class Compose:
    """A command, and what its environment needs."""

    command: tuple[str, ...]
    environment: dict[str, str] = field(default_factory=dict)

    @property
    def version(self) -> str:
        return sh(*self.command, "version", "--short", env={**os.environ, **self.environment}).strip().lstrip("v")


def compose_v1() -> Compose:
    """Debian 12's docker-compose 1.29. RuntimeError: `docker-compose` is another."""
    # It gives up a request to the engine after a minute, which a busy machine needs for containers side by side.
    compose = Compose(("docker-compose",), {"COMPOSE_HTTP_TIMEOUT": "300"})
    if not compose.version.startswith("1.29."):
        raise RuntimeError(f"docker-compose is {compose.version}; these tests need 1.29, which is Debian 12's")
    return compose


def compose_v2(folder: Path) -> Compose:
    """The machine's `docker compose`, else Debian's as a plugin of a configuration of its own in `folder`."""
    command = ("docker", "compose")
    if subprocess.run([*command, "version"], capture_output=True).returncode == 0:
        return Compose(command)
    plugins = "usr/libexec/docker/cli-plugins"
    found = fetch("docker-compose", V2_SUITE, folder / "package") / plugins / "docker-compose"
    (folder / "cli-plugins").mkdir()
    (folder / "cli-plugins" / "docker-compose").symlink_to(found)
    return Compose(command, {"DOCKER_CONFIG": str(folder)})


@dataclass(frozen=True)
class Stack:
    """The fleet of compose.yaml. `folder` is where clients read and write."""

    composer: Compose
    folder: Path
    environment: dict[str, str]
    files: tuple[str, ...] = ("compose.yaml",)

    def with_environment(self, **more: str) -> Stack:
        return replace(self, environment={**self.environment, **more})

    def compose(self, *arguments: str) -> str:
        files = [part for name in self.files for part in ("-f", str(ROOT / "deploy" / name))]
        environment = {**self.environment, **self.composer.environment}
        return sh(*self.composer.command, "-p", PROJECT, *files, *arguments, env=environment)

    def client(self, *arguments: str) -> str:
        return self.compose("run", "--rm", "-T", "client", *arguments)

    def containers(self, service: str, oneoff: bool = False) -> list[str]:
        """Those of `up`, or those of `run`; also such as do not run."""
        labels = {"project": PROJECT, "service": service, "oneoff": str(oneoff)}
        filters = [f"--filter=label=com.docker.compose.{name}={value}" for name, value in labels.items()]
        return sh("docker", "ps", "-aq", "--no-trunc", *filters).split()

    def state(self, container: str) -> str:
        """ "healthy", "starting", "unhealthy", or "exited" and the like."""
        state = json.loads(sh("docker", "inspect", container))[0]["State"]
        return str(state.get("Health", {}).get("Status") if state["Running"] else state["Status"])

    def wait_healthy(self) -> None:
        def states() -> list[str]:
            return [self.state(container) for service in SERVICES for container in self.containers(service)]

        everyone = ["healthy"] * (len(SERVICES) - 1 + RENDERERS)
        wait_for(lambda: states() == everyone, lambda: f"{states()}\n{self.compose('logs', '--tail=20')}")

    def redis(self, service: str, *arguments: str) -> str:
        (server,) = self.containers(service)
        return sh("docker", "exec", server, "sh", "-c", REDIS_CLI, "redis-cli", *arguments)

    def hash(self, key: str) -> dict[str, str]:
        """A hash of the artifacts' server."""
        return dict(json.loads(self.redis("artifacts", "--json", "hgetall", key)))


@contextmanager
def running(stack: Stack) -> Iterator[Stack]:
    """The fleet up with three renderers and well; gone in the end."""
    try:
        stack.compose("up", "-d", "--scale", f"render={RENDERERS}")
        stack.wait_healthy()
        yield stack
    finally:
        stack.compose("down", "--volumes", "--remove-orphans", "--timeout", "1")
