"""A pack with the published models' tensors runs through the same code by its manifest alone."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import pytest

from pipeline import RuntimeOptions, Settings, open_pack, render
from pipeline.packs.pack import Pack
from pipeline.report import Report
from pipeline.studio import Studio
from tests.published_pack import build_published_pack

SAMPLES = Path(__file__).parents[3] / "samples"


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Pack:
    return open_pack(str(build_published_pack(tmp_path_factory.mktemp("packs") / "stand-in")))


@pytest.mark.parametrize("preset", ["preview", "quality"])
def test_it_makes_a_film(preset: str, published: Pack, tmp_path: Path) -> None:
    settings = Settings(preset=preset, frame="crop", fps=Fraction(10))
    report = render(
        SAMPLES / "portrait.png", SAMPLES / "voice.wav", tmp_path / "film.webm", settings, pack=published,
        options=RuntimeOptions(threads=2),
    )  # fmt: skip
    assert report.pack == "stand-in"
    assert report.frames.total == 85
    assert 18 <= report.frames.key_frames < 45  # 2 a second and extras
    assert report.repairs == []
    with av.open(str(tmp_path / "film.webm")) as container:
        frames = [frame.to_ndarray(format="rgb24") for frame in container.decode(video=0)]
    assert len(frames) == 85
    assert frames[0].shape[0] == {"preview": 256, "quality": 512}[preset]
    assert np.abs(frames[0].astype(int) - frames[40]).mean() > 0.2


def test_its_source_comes_from_the_motion_extractor(published: Pack) -> None:
    studio = Studio(published, RuntimeOptions(threads=1))
    portrait = studio.prepare_portrait(SAMPLES / "portrait.png", Settings(), Report())
    source = studio.make_appearance(portrait, Report()).source
    assert source.keypoints.shape == (21, 3)
    assert source.basis is None
    assert source.closed_mouth is None
    unmoved = source.scale * (source.kp @ source.rotation + source.expression)
    np.testing.assert_allclose(source.keypoints - unmoved, np.tile([0.02, -0.03, 0], (21, 1)), atol=1e-6)


def test_another_pack_is_another_identity(published: Pack) -> None:
    assert published.identity != open_pack().identity
