"""The person apart from the background, in the embedded pack's features and frames."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from PIL import Image

from pipeline.packs.embedded.authoring.anatomy import RIGID
from pipeline.packs.embedded.authoring.matte import FINE, SEGMENTER, _spread
from pipeline.packs.embedded.authoring.writer import Graph
from tests.faces.acting import FACES, POSES, SIZE, Actor, open_studio
from tests.faces.measures.background import behind, coverage, stillness
from tests.faces.measures.blackbox import coordinate_pictures

TURNED = ["yaw -12", "yaw +12", "pitch -8", "pitch +8"]


@pytest.fixture(scope="module")
def kofi() -> Actor:
    return Actor.open(FACES / "kofi.jpg", open_studio())


@pytest.mark.parametrize("shown", [np.s_[:200], np.s_[:, 400:], np.s_[10:30, 10:30]], ids=["above", "beside", "a spot"])
def test_an_even_wall_is_even_behind_whoever_hides_it(shown: tuple[slice, ...] | slice) -> None:
    g = Graph("wall")
    wall, hidden = g.input("wall", [1, 3, SIZE, SIZE]), g.input("hidden", [1, 1, SIZE, SIZE])
    g.output("filled", _spread(g, wall, 3, hidden, FINE), [1, 3, SIZE, SIZE])
    covered = np.ones((1, 1, SIZE, SIZE), np.float32)
    covered[0, 0][shown] = 0
    colour = np.full((1, 3, SIZE, SIZE), 0.8, np.float32)
    session = ort.InferenceSession(g.model().SerializeToString(), providers=["CPUExecutionProvider"])
    (filled,) = session.run(None, {"wall": colour, "hidden": covered})
    np.testing.assert_allclose(filled, colour, atol=0.01)


def test_the_background_stands_still_while_the_head_turns(kofi: Actor) -> None:
    assert behind(kofi.photo).mean() > 0.25
    assert stillness(kofi).difference < 0.02


def test_lines_behind_the_head_stay_straight(kofi: Actor, tmp_path: Path) -> None:
    """Bars that run into the head's outline."""
    y, x = np.mgrid[0:SIZE, 0:SIZE]
    bars = np.where((x + y) // 16 % 2, 210.0, 90.0)[:, :, None]
    cover = coverage(kofi.photo)[:, :, None]
    picture = tmp_path / "bars.png"
    Image.fromarray(np.round(kofi.photo * cover + bars * (1 - cover)).astype(np.uint8)).save(picture)
    actor = Actor.open(picture, kofi.studio)
    photo = actor.photo.astype(int)
    looked = behind(actor.photo)
    assert looked.mean() > 0.25
    for frame in actor.act(*(POSES[name] for name in TURNED)):
        assert np.abs(frame - photo)[looked].max() <= 2


def test_nothing_of_the_head_is_left_in_the_background(kofi: Actor) -> None:
    """A dark head before a light wall."""
    picture = kofi.appearance.features["background"][0].transpose(1, 2, 0).astype(int)
    wall = behind(kofi.photo)
    np.testing.assert_array_equal(picture[wall], kofi.photo[wall])
    assert kofi.photo[coverage(kofi.photo) > 0.9].mean() < picture[wall].min() - 20
    assert picture.min() > picture[wall].min() - 10


def test_coverage_is_whole_in_the_face_and_none_behind(kofi: Actor) -> None:
    alpha = kofi.appearance.features["alpha"][0, 0].repeat(2, 0).repeat(2, 1)
    x, y = kofi.points[RIGID, :2].round().astype(int).T
    assert alpha[y, x].min() > 240
    assert alpha[behind(kofi.photo)].max() < 3


def test_where_nobody_is_seen_all_goes_with_the_head(kofi: Actor) -> None:
    source = kofi.appearance.source.keypoints[None]
    features = kofi.studio.models.get("appearance").run({"image": coordinate_pictures()[0], "kp_source": source})
    assert features["alpha"].min() == 255
    own = kofi.appearance.features["crop_rigid"].astype(np.float32)
    assert np.abs(own).sum() > 1.1 * np.abs(features["crop_rigid"].astype(np.float32)).sum()


def test_a_graph_spliced_in_gives_what_it_gives_alone(kofi: Actor) -> None:
    image = kofi.photo[::2, ::2].transpose(2, 0, 1)[None].astype(np.float32) / 255
    model = onnx.load(SEGMENTER)
    g = Graph("spliced")
    g.output("twice", g.splice(model, g.input("image", [1, 3, 256, 256])) * 2, [1, 1, 256, 256])
    sessions = [
        ort.InferenceSession(each.SerializeToString(), providers=["CPUExecutionProvider"])
        for each in (model, g.model())
    ]
    alone, spliced = (session.run(None, {"image": image})[0] for session in sessions)
    assert alone.max() > 0.99
    np.testing.assert_allclose(spliced, alone * 2, atol=1e-5)
