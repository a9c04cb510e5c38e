"""What tests of several parts share: the faces pack, the sample portrait, and the face finder."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from pipeline.faces.crop import CropSpec
from pipeline.faces.finder import FaceFinder
from pipeline.packs.locks import locked
from pipeline.packs.manifest import read_manifest
from pipeline.packs.pack import Pack
from pipeline.packs.places import MANIFEST
from pipeline.packs.section import Section
from pipeline.packs.store import DEFAULT_PACK, FACES_PACK, SHIPPED, open_pack
from pipeline.runtime.ladder import Ladder
from pipeline.runtime.options import RuntimeOptions
from pipeline.values import Portrait
from tests.portraits import Prepare
from tests.redis_server import redis_binary

ROOT = Path(__file__).parent.parent


def pytest_configure(config: pytest.Config) -> None:
    """Find or install redis-server once, before tests run side by side; without one nothing runs."""
    if not hasattr(config, "workerinput"):
        try:
            redis_binary()
        except RuntimeError as error:
            pytest.exit(str(error), returncode=1)


@pytest.fixture(scope="session")
def sample_portrait_path() -> Path:
    """The portrait of `make demo`: 512 x 512, one face with a box of 95 pixels."""
    return ROOT / "samples" / "portrait.png"


@pytest.fixture(scope="session")
def sample_picture(sample_portrait_path: Path) -> NDArray[np.uint8]:
    """Pixels of the sample portrait, [512, 512, 3]; not to be written to."""
    with Image.open(sample_portrait_path) as image:
        pixels = np.asarray(image.convert("RGB"))
    pixels.setflags(write=False)
    return pixels


@pytest.fixture(scope="session")
def faces_pack() -> Pack:
    return open_pack(FACES_PACK)


@pytest.fixture(scope="session")
def face_finder(faces_pack: Pack) -> FaceFinder:
    return FaceFinder.open(faces_pack, Ladder(RuntimeOptions(threads=2)))


@pytest.fixture(scope="session")
def embedded_manifest() -> Section:
    """The embedded pack's manifest alone, for what needs none of its models."""
    return read_manifest(SHIPPED / DEFAULT_PACK / MANIFEST).root


@pytest.fixture(scope="session")
def crop_spec(embedded_manifest: Section) -> CropSpec:
    return CropSpec.read(embedded_manifest.section("crop"))


@pytest.fixture(scope="session")
def prepare(face_finder: FaceFinder, crop_spec: CropSpec) -> Prepare:
    """Stage 2 of pixels, bytes or a path."""
    return Prepare(face_finder, crop_spec)


@pytest.fixture(scope="session")
def sample(prepare: Prepare, sample_portrait_path: Path) -> Portrait:
    """The sample portrait after stage 2."""
    return prepare(sample_portrait_path)


@pytest.fixture(scope="session")
def published(tmp_path_factory: pytest.TempPathFactory) -> Pack:
    """The published pack's stand-in with narrow networks, made once for all processes; not to be changed."""
    from pipeline.packs.standins import write_pack

    root = tmp_path_factory.getbasetemp()
    root = root.parent if "PYTEST_XDIST_WORKER" in os.environ else root
    folder = root / "published" / "timeline-studio"
    with locked(root / "published.lock"):
        return Pack.open(folder if (folder / MANIFEST).exists() else write_pack(folder, small=True))
