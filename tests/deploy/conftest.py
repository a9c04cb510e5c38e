"""Fixtures of the tests that are marked `docker`: an engine, images, both Composes."""

from __future__ import annotations

import os
import shutil
import wave
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.deploy.compose import LIMITS, PORTS, Compose, Stack, compose_v1, compose_v2
from tests.deploy.debian import install
from tests.deploy.engine import IMAGE, ROOT, Images, build_bases, build_context, build_image, engine, remove_images


@pytest.fixture(scope="session")
def docker_engine() -> Iterator[None]:
    install()
    with engine():
        yield


@pytest.fixture(scope="session")
def images(docker_engine: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Images]:
    """What is downloaded and what is built, each two at a time."""
    folder = tmp_path_factory.mktemp("images")
    try:
        with ThreadPoolExecutor() as pool:
            downloaded = pool.submit(build_context, folder)
            base, redis = build_bases()
            context = downloaded.result()
            # Of the image for GPUs all but its base and onnxruntime-gpu, which is several hundred MB.
            cuda = pool.submit(build_image, context, "Dockerfile.cuda", f"{IMAGE}-cuda", BASE=base, EXTRA="cpu")
            talkreel = build_image(context, "Dockerfile", IMAGE, BASE=base)
        yield Images(talkreel, redis, cuda)
    finally:
        remove_images()


@pytest.fixture(scope="session")
def v1(docker_engine: None) -> Compose:
    return compose_v1()


@pytest.fixture(scope="session")
def v2(docker_engine: None, tmp_path_factory: pytest.TempPathFactory) -> Compose:
    return compose_v2(tmp_path_factory.mktemp("compose"))


@pytest.fixture(scope="session")
def fleet(images: Images, tmp_path_factory: pytest.TempPathFactory) -> Stack:
    """The fleet without passwords, and down; its folder has the samples, and beginnings of the voice."""
    folder = tmp_path_factory.mktemp("fleet") / "work"
    shutil.copytree(ROOT / "samples", folder)
    for name, seconds in (("short.wav", 1.5), ("phrase.wav", 5.0)):
        with wave.open(str(folder / "voice.wav")) as whole, wave.open(str(folder / name), "wb") as part:
            part.setparams(whole.getparams())
            part.writeframes(whole.readframes(int(seconds * whole.getframerate())))
    folder.chmod(0o777)
    more = {"TALKREEL_IMAGE": images.talkreel, "REDIS_IMAGE": images.redis, "CLIENT_FOLDER": str(folder)}
    return Stack(Compose(()), folder, {**os.environ, **PORTS, **LIMITS, **more})
