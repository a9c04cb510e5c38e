"""The fleet in containers, as deploy/ ships it, with Compose v2: a film is made though a worker dies and the broker
restarts, and an upgrade loses nothing."""

from __future__ import annotations

import json
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import av
import pytest

from pipeline import RuntimeOptions, Settings, render
from tests.deploy.compose import PORTS, PROJECT, RENDERERS, SERVICES, Compose, Stack, running
from tests.deploy.debian import fetch
from tests.deploy.engine import IMAGE, ROOT, SUITE, Images
from tests.deploy.shell import sh, wait_for

pytestmark = pytest.mark.docker

MOST_BYTES = 700_000_000
PASSWORDS = {"TALKREEL_BROKER_PASSWORD": 'a b"c\\d', "TALKREEL_ARTIFACTS_PASSWORD": "art", "FLOWER_PASSWORD": "flo"}


@pytest.fixture(scope="module")
def stack(fleet: Stack, v2: Compose) -> Iterator[Stack]:
    assert int(v2.version.split(".")[0]) >= 2
    with running(replace(fleet, composer=v2).with_environment(**PASSWORDS)) as stack:
        yield stack


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
        containers = stack.containers(service)
        assert len(containers) == (RENDERERS if service == "render" else 1)
        for container in containers:
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


def test_packs_lie_in_a_volume_that_workers_read(stack: Stack) -> None:
    assert "timeline-studio" in stack.compose("run", "--rm", "-T", "packs", "list")
    stack.compose("run", "--rm", "-T", "--entrypoint", "touch", "packs", "/packs/pulled")
    (worker,) = stack.containers("media")
    assert sh("docker", "exec", worker, "ls", "/packs").split() == ["pulled"]
    written = ["docker", "exec", worker, "touch", "/packs/changed"]
    assert subprocess.run(written, capture_output=True).returncode != 0


def test_flower_refuses_who_has_no_password(stack: Stack) -> None:
    with pytest.raises(urllib.error.HTTPError) as caught:
        urllib.request.urlopen(f"http://{PORTS['FLOWER_ADDRESS']}/", timeout=20)
    with caught.value as refused:
        assert refused.code == 401


def test_nothing_starts_without_passwords(stack: Stack, v1: Compose) -> None:
    for name in PASSWORDS:
        missing = {key: value for key, value in stack.environment.items() if key != name}
        for compose in (stack.composer, v1):
            with pytest.raises(RuntimeError, match="is required"):
                replace(stack, composer=compose, environment=missing).compose("config")
    empty = ["docker", "run", "--rm", "-v", f"{ROOT / 'deploy' / 'redis'}:/talkreel:ro", "--entrypoint", "sh"]
    with pytest.raises(RuntimeError, match="Redis needs a password"):
        sh(*empty, stack.environment["REDIS_IMAGE"], "/talkreel/start.sh")
    with pytest.raises(RuntimeError, match="refuses us"):
        stack.compose("run", "--rm", "-T", "-e", "TALKREEL_ARTIFACTS_PASSWORD=wrong", "client", "jobs")


def test_a_film_survives_a_killed_worker_and_a_restarted_broker(stack: Stack, tmp_path: Path) -> None:
    settings = ["--preset", "preview", "--seed", "5"]
    renderers = stack.containers("render")
    # Slow, so that a step is caught before it ends, however slow Docker's commands are.
    sh("docker", "update", "--cpus=0.15", *renderers)
    victim = ""
    try:
        job = json.loads(stack.client("submit", "portrait.png", "phrase.wav", *settings, "--json"))["job"]
        victim, step = wait_for(lambda: freeze_a_renderer(stack, job), lambda: stack.compose("logs", "--tail=30"))
        sh("docker", "kill", "--signal=KILL", victim)
    finally:
        sh("docker", "update", "--cpus=1", *(name for name in renderers if name != victim))
    stack.compose("restart", "broker")
    wait_for(lambda: stack.state(stack.containers("broker")[0]) == "healthy", lambda: stack.compose("logs", "broker"))
    stack.client("watch", job)
    stack.client("fetch", job, "-o", "film.webm")
    again = steps(stack, job)[step]
    assert (again["status"], again["starts"]) == ("done", 2)

    film = stack.folder / "film.webm"
    with av.open(str(film)) as container:
        frames = sum(1 for _ in container.decode(video=0))
    whole = tmp_path / "local.webm"
    chosen = Settings.from_json({**Settings().to_json(), "preset": "preview", "seed": 5})
    render(stack.folder / "portrait.png", stack.folder / "phrase.wav", whole, chosen, options=RuntimeOptions(1))
    with av.open(str(whole)) as container:
        assert frames == sum(1 for _ in container.decode(video=0))
    assert film.read_bytes() == whole.read_bytes()


def steps(stack: Stack, job: str) -> dict[str, dict[str, object]]:
    """What the fleet knows of a job's steps (see workers.jobs)."""
    return {name: json.loads(text) for name, text in stack.hash(f"fleet:job:{job}:steps").items()}


def freeze_a_renderer(stack: Stack, job: str) -> tuple[str, str] | None:
    """Pause a container in the midst of a step: begun by it, frames of it rendered, and not ended. The container
    and the step; None: there is none at this moment."""
    assert stack.hash(f"fleet:job:{job}")["state"] == "running"
    for step, state in steps(stack, job).items():
        for container in stack.containers("render"):
            # Its host name is the beginning of its id.
            if state["status"] != "running" or f"/{container[:12]}." not in str(state["owner"]):
                continue
            if subprocess.run(["docker", "pause", container], capture_output=True).returncode:
                continue  # the kernel could not freeze it at this moment
            now = steps(stack, job)[step]
            rendered = stack.hash(f"fleet:job:{job}:counts").get(f"frames/{step.partition(':')[2]}", "0")
            if now["status"] == "running" and now["owner"] == state["owner"] and int(rendered) > 0:
                return container, step
            sh("docker", "unpause", container)
    return None


def test_a_worker_stops_in_good_order(stack: Stack) -> None:
    victim = stack.containers("encode")[0]
    sh("docker", "stop", "--time", "45", victim)
    assert json.loads(sh("docker", "inspect", victim))[0]["State"]["ExitCode"] == 0


def test_the_image_for_gpus_builds_but_for_its_base(images: Images) -> None:
    inside = ["docker", "run", "--rm", "--read-only", "--tmpfs", "/tmp", images.cuda.result()]
    assert "Nothing is missing" in sh(*inside, "doctor")


def test_prometheus_takes_its_files(tmp_path: Path) -> None:
    promtool = fetch("prometheus", SUITE, tmp_path) / "usr" / "bin" / "promtool"
    assert "6 rules found" in sh(str(promtool), "check", "config", str(ROOT / "deploy/prometheus/prometheus.yml"))
