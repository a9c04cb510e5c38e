"""The fleet in containers, as deploy/ ships it: a film is made though a worker dies and the broker restarts."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import av
import pytest

from pipeline import RuntimeOptions, Settings, render
from tests.deploy.engine import IMAGE, ROOT, build_bases, build_context, engine, install, legacy, sh

pytestmark = pytest.mark.docker

PROJECT = "talkreeltest"
MOST_BYTES = 700_000_000
PORTS = {"FLOWER_ADDRESS": "127.0.0.1:15555", "METRICS_ADDRESS": "127.0.0.1:19540"}
PASSWORDS = {"TALKREEL_BROKER_PASSWORD": 'a b"c\\d', "TALKREEL_ARTIFACTS_PASSWORD": "art", "FLOWER_PASSWORD": "flo"}
SERVICES = ("broker", "artifacts", "media", "render", "encode", "flower", "metrics")
WAIT = 180.0


@dataclass(frozen=True)
class Stack:
    """The fleet of compose.yaml. `folder` is where clients read and write."""

    folder: Path
    environment: dict[str, str]
    context: Path
    base: str

    def compose(self, *arguments: str) -> str:
        files = ["-f", str(ROOT / "deploy" / "compose.yaml")]
        return sh("docker-compose", "-p", PROJECT, *files, *arguments, env=self.environment)

    def client(self, *arguments: str) -> str:
        return self.compose("run", "--rm", "-T", "client", *arguments)

    def containers(self, service: str) -> list[str]:
        return self.compose("ps", "-q", service).split()

    def state(self, container: str) -> str:
        """ "healthy", "starting", "unhealthy", or "exited" and the like."""
        state = json.loads(sh("docker", "inspect", container))[0]["State"]
        return str(state.get("Health", {}).get("Status") if state["Running"] else state["Status"])

    def wait_healthy(self) -> None:
        def states() -> list[str]:
            return [self.state(container) for service in SERVICES for container in self.containers(service)]

        wait_for(lambda: set(states()) == {"healthy"}, lambda: f"{states()}\n{self.compose('logs', '--tail=20')}")


def wait_for(condition: Callable[[], bool], message: Callable[[], str]) -> None:
    end = time.monotonic() + WAIT
    while not condition():
        assert time.monotonic() < end, message()
        time.sleep(0.3)


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """The image built, the fleet up with two renderers; gone in the end."""
    folder = tmp_path_factory.mktemp("docker")
    install()
    with engine():
        base, redis = build_bases()
        context = build_context(folder)
        dockerfile = str(context / "deploy" / "Dockerfile")
        sh(
            "docker",
            "build",
            "-q",
            "-f",
            dockerfile,
            "--build-arg",
            f"BASE={base}",
            "-t",
            IMAGE,
            str(context),
            env=legacy(),
        )
        work = folder / "work"
        shutil.copytree(ROOT / "samples", work)
        work.chmod(0o777)
        more = {"TALKREEL_IMAGE": IMAGE, "REDIS_IMAGE": redis, "CLIENT_FOLDER": str(work)}
        limits = {"RENDER_CORES": "1", "ENCODE_CORES": "1", "ARTIFACTS_MEMORY": "1gb", "ARTIFACTS_LIMIT": "2g"}
        made = Stack(work, {**os.environ, **PASSWORDS, **PORTS, **more, **limits}, context, base)
        try:
            made.compose("up", "-d", "--scale", "render=2")
            made.wait_healthy()
            yield made
        finally:
            made.compose("down", "--volumes", "--remove-orphans", "--timeout", "5")
            sh("docker", "rmi", "-f", IMAGE)
            sh("docker", "image", "prune", "--force", "--filter", "label=talkreel=build")


def test_the_image_is_small_and_for_nobody_in_particular(stack: Stack) -> None:
    facts = json.loads(sh("docker", "image", "inspect", IMAGE))[0]
    print(f"image: {facts['Size'] / 1e6:.0f} MB")
    assert facts["Size"] < MOST_BYTES
    assert facts["Config"]["User"] not in ("", "0", "root")
    inside = ["docker", "run", "--rm", "--read-only", "--tmpfs", "/tmp", "--entrypoint", "sh", IMAGE, "-c"]
    assert sh(*inside, "command -v gcc cc g++ make ld pip || echo none").strip() == "none"
    assert sh(*inside, "id -u").strip() == "10001"
    assert "Nothing is missing" in sh(*inside, "talkreel doctor")


def test_containers_are_locked_down(stack: Stack) -> None:
    for service in SERVICES:
        for container in stack.containers(service):
            facts = json.loads(sh("docker", "inspect", container))[0]
            host = facts["HostConfig"]
            assert host["ReadonlyRootfs"], service
            assert host["Memory"] > 0, service
            assert host["NanoCpus"] > 0, service
            assert host["RestartPolicy"]["Name"] == "unless-stopped", service
            assert facts["Config"]["User"].split(":")[0] not in ("", "0"), service
            assert "ALL" in host["CapDrop"], service
            written = ["docker", "exec", container, "sh", "-c", "touch /opt/x || touch /usr/x"]
            assert subprocess.run(written, capture_output=True).returncode != 0, service
            assert any(
                key.endswith("5555/tcp") or key.endswith("9540/tcp") for key in facts["NetworkSettings"]["Ports"]
            ) == (service in ("flower", "metrics"))
    network = json.loads(sh("docker", "network", "inspect", f"{PROJECT}_fleet"))[0]
    assert network["Internal"]


def test_flower_refuses_who_has_no_password(stack: Stack) -> None:
    with pytest.raises(urllib.error.HTTPError) as caught:
        urllib.request.urlopen(f"http://{PORTS['FLOWER_ADDRESS']}/", timeout=20)
    with caught.value as refused:
        assert refused.code == 401


def test_nothing_starts_without_passwords(stack: Stack) -> None:
    for name in PASSWORDS:
        missing = {key: value for key, value in stack.environment.items() if key != name}
        with pytest.raises(RuntimeError, match="is required"):
            sh("docker-compose", "-f", str(ROOT / "deploy" / "compose.yaml"), "config", env=missing)
    empty = ["docker", "run", "--rm", "-v", f"{ROOT / 'deploy' / 'redis'}:/talkreel:ro", "--entrypoint", "sh"]
    with pytest.raises(RuntimeError, match="Redis needs a password"):
        sh(*empty, stack.environment["REDIS_IMAGE"], "/talkreel/start.sh")
    with pytest.raises(RuntimeError, match="refuses us"):
        stack.compose("run", "--rm", "-T", "-e", "TALKREEL_ARTIFACTS_PASSWORD=wrong", "client", "jobs")


def test_a_film_survives_a_killed_worker_and_a_restarted_broker(stack: Stack, tmp_path: Path) -> None:
    settings = ["--preset", "preview", "--seed", "5"]
    job = json.loads(stack.client("submit", "portrait.png", "voice.wav", *settings, "--json"))["job"]

    def rendered() -> float:
        with urllib.request.urlopen(f"http://{PORTS['METRICS_ADDRESS']}/metrics", timeout=60) as answer:
            lines = answer.read().decode().splitlines()
        return sum(
            float(line.split()[-1]) for line in lines if line.startswith('talkreel_step_seconds_count{step="render"}')
        )

    before = rendered()
    wait_for(lambda: rendered() > before, lambda: stack.compose("logs", "--tail=30"))
    victim = stack.containers("render")[0]
    sh("docker", "kill", "--signal=KILL", victim)
    stack.compose("restart", "broker")
    wait_for(lambda: stack.state(stack.containers("broker")[0]) == "healthy", lambda: stack.compose("logs", "broker"))
    stack.client("watch", job)
    stack.client("fetch", job, "-o", "film.webm")

    film = stack.folder / "film.webm"
    with av.open(str(film)) as container:
        frames = sum(1 for _ in container.decode(video=0))
    whole = tmp_path / "local.webm"
    chosen = Settings.from_json({**Settings().to_json(), "preset": "preview", "seed": 5})
    render(ROOT / "samples" / "portrait.png", ROOT / "samples" / "voice.wav", whole, chosen, options=RuntimeOptions(1))
    with av.open(str(whole)) as container:
        assert frames == sum(1 for _ in container.decode(video=0))
    assert film.read_bytes() == whole.read_bytes()
    sh("docker", "start", victim)
    stack.wait_healthy()


def test_a_worker_stops_in_good_order(stack: Stack) -> None:
    victim = stack.containers("encode")[0]
    sh("docker", "stop", "--time", "45", victim)
    assert json.loads(sh("docker", "inspect", victim))[0]["State"]["ExitCode"] == 0


def test_the_image_for_gpus_builds_but_for_its_base(stack: Stack) -> None:
    """Everything but the base and onnxruntime-gpu, which is several hundred MB."""
    arguments = ["--build-arg", f"BASE={stack.base}", "--build-arg", "EXTRA=cpu"]
    dockerfile = str(stack.context / "deploy" / "Dockerfile.cuda")
    image = sh("docker", "build", "-q", "-f", dockerfile, *arguments, str(stack.context), env=legacy()).split()[-1]
    try:
        assert "Nothing is missing" in sh("docker", "run", "--rm", "--read-only", "--tmpfs", "/tmp", image, "doctor")
    finally:
        sh("docker", "rmi", "-f", image)
