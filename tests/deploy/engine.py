"""A Docker engine for tests, and images that need no registry: a base made by debootstrap, wheels fetched by pip."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from tests.deploy.debian import MIRROR
from tests.deploy.shell import sh

ROOT = Path(__file__).parents[2]

SUITE, PYTHON = "bookworm", "3.11"
SLIM = (
    "apt-get clean; rm -rf /var/lib/apt/lists/* /var/cache/apt/* /usr/share/doc/* /usr/share/man/* /usr/share/locale/*"
)
REDIS_DOCKERFILE = """\
FROM {base}
RUN userdel redis && groupadd -g 999 redis && useradd -u 999 -g 999 redis && mkdir /data && chown 999:999 /data
VOLUME /data
"""

PREFIX = "talkreel-test"
BASE, REDIS, IMAGE = f"{PREFIX}/base", f"{PREFIX}/redis", f"{PREFIX}/talkreel"


@dataclass(frozen=True)
class Images:
    """Names. `cuda` has that of the image for GPUs, or why there is none."""

    talkreel: str
    redis: str
    cuda: Future[str]


@contextmanager
def engine() -> Iterator[None]:
    """A Docker engine that answers: the one that runs, else one started here and stopped in the end."""
    if _answers():
        yield
        return
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(["dockerd"], stdout=log, stderr=log)
        try:
            end = time.monotonic() + 60
            while not _answers():
                if process.poll() is not None or time.monotonic() > end:
                    log.seek(0)
                    raise RuntimeError(f"dockerd does not start:\n{log.read().decode()[-3000:]}")
                time.sleep(0.5)
            yield
        finally:
            process.terminate()
            with suppress(subprocess.TimeoutExpired):
                process.wait(60)


def _answers() -> bool:
    return subprocess.run(["docker", "version"], capture_output=True).returncode == 0


def build_bases() -> tuple[str, str]:
    """Images with Python and with Redis, made once a machine and recipe; their names."""
    recipe = hashlib.sha256((SLIM + REDIS_DOCKERFILE + MIRROR + SUITE).encode()).hexdigest()[:12]
    base, redis = f"{BASE}:{recipe}", f"{REDIS}:{recipe}"
    if _has(base) and _has(redis):
        return base, redis
    folder = Path(tempfile.mkdtemp(prefix="talkreel-base-"))
    try:
        include = "--include=python3,python3-venv,ca-certificates"
        sh("debootstrap", "--variant=minbase", include, SUITE, str(folder), MIRROR, timeout=500)
        sh("chroot", str(folder), "sh", "-c", SLIM)
        _import(folder, base)
        quiet = "export DEBIAN_FRONTEND=noninteractive; apt-get update -qq && apt-get install -y -qq redis-server"
        sh("chroot", str(folder), "sh", "-c", f"{quiet} && {SLIM}")
        _import(folder, f"{PREFIX}/redis-root:{recipe}")
        dockerfile = REDIS_DOCKERFILE.format(base=f"{PREFIX}/redis-root:{recipe}")
        sh("docker", "build", "-t", redis, "-", input=dockerfile, env=legacy())
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return base, redis


def _has(image: str) -> bool:
    return subprocess.run(["docker", "image", "inspect", image], capture_output=True).returncode == 0


def _import(folder: Path, image: str) -> None:
    sh("sh", "-c", 'tar -C "$0" -c . | docker import - "$1"', str(folder), image)


def legacy() -> dict[str, str]:
    """The environment in which Docker builds without BuildKit."""
    return {**os.environ, "DOCKER_BUILDKIT": "0"}


def build_image(context: Path, dockerfile: str, name: str, **arguments: str) -> str:
    """Build one of deploy/'s Dockerfiles; its name."""
    values = [part for key, value in arguments.items() for part in ("--build-arg", f"{key}={value}")]
    file = str(context / "deploy" / dockerfile)
    sh("docker", "build", "-q", "-f", file, *values, "-t", name, str(context), env=legacy(), timeout=600)
    return name


def remove_images() -> None:
    """What was built here, but for the bases."""
    if built := sh("docker", "image", "ls", "-q", f"{IMAGE}*").split():
        sh("docker", "image", "rm", "-f", *built)
    sh("docker", "image", "prune", "--force", "--filter", "label=talkreel=build")


def build_context(folder: Path) -> Path:
    """The sources with the wheels for the base's Python, of the versions that are installed here."""
    context = folder / "context"
    for name in (".dockerignore", "LICENSE", "README.md", "THIRD_PARTY", "pyproject.toml"):
        context.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, context / name)
    for name in ("pipeline", "workers", "deploy"):
        shutil.copytree(ROOT / name, context / name, ignore=shutil.ignore_patterns("__pycache__", "*.whl"))
    pip = [sys.executable, "-m", "pip"]
    frozen = [line for line in sh(*pip, "freeze", "--exclude-editable").splitlines() if "==" in line]
    (folder / "constraints.txt").write_text("\n".join(frozen))
    target = ["--only-binary=:all:", f"--python-version={PYTHON}", "--implementation=cp"]
    wheels = str(context / "deploy" / "wheels")
    needs = sh(sys.executable, "-c", _NEEDS, cwd=ROOT).split("\n")[:-1]
    constraints = ["-c", str(folder / "constraints.txt")]
    sh(*pip, "download", "-q", "-d", wheels, *target, *constraints, *needs, "setuptools>=77", "async-timeout")
    return context


_NEEDS = """
import tomllib
project = tomllib.load(open("pyproject.toml", "rb"))["project"]
extras = project["optional-dependencies"]
wanted = [need for extra in ("cpu", "hub", "flower", "metrics") for need in extras[extra]]
print(*project["dependencies"], *wanted, sep="\\n")
"""
