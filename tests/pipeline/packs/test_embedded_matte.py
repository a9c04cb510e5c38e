"""The person apart from the background, in the embedded pack's features and frames."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from numpy.typing import NDArray
from PIL import Image

from pipeline.packs.embedded.authoring.anatomy import CHIN, RIGID
from pipeline.packs.embedded.authoring.background_fill import FINE, spread
from pipeline.packs.embedded.authoring.matte import SEGMENTER
from pipeline.packs.embedded.authoring.writer import Graph
from tests.faces.acting import FACES, POSES, SIZE, Actor, open_studio
from tests.faces.measures.background import SEEN, behind, coverage, stillness
from tests.faces.measures.blackbox import coordinate_pictures, grown

TURNED = ["yaw -12", "yaw +12", "pitch -8", "pitch +8"]


@pytest.fixture(scope="module")
def kofi() -> Actor:
    return Actor.open(FACES / "kofi.jpg", open_studio())


@pytest.mark.parametrize("shown", [np.s_[:200], np.s_[:, 400:], np.s_[10:30, 10:30]], ids=["above", "beside", "a spot"])
def test_an_even_wall_is_even_behind_whoever_hides_it(shown: tuple[slice, ...] | slice) -> None:
    g = Graph("wall")
    wall, hidden = g.input("wall", [1, 3, SIZE, SIZE]), g.input("hidden", [1, 1, SIZE, SIZE])
    g.output("filled", spread(g, wall, 3, hidden, FINE), [1, 3, SIZE, SIZE])
    covered = np.ones((1, 1, SIZE, SIZE), np.float32)
    covered[0, 0][shown] = 0
    colour = np.full((1, 3, SIZE, SIZE), 0.8, np.float32)
    session = ort.InferenceSession(g.model().SerializeToString(), providers=["CPUExecutionProvider"])
    (filled,) = session.run(None, {"wall": colour, "hidden": covered})
    np.testing.assert_allclose(filled, colour, atol=0.01)


def test_the_background_stands_still_while_the_head_turns(kofi: Actor) -> None:
    assert behind(kofi.photo).mean() > 0.25
    assert stillness(kofi).difference < 0.02


@pytest.fixture(scope="module")
def barred(kofi: Actor, tmp_path_factory: pytest.TempPathFactory) -> Actor:
    """Bars that run into the head's outline."""
    y, x = np.mgrid[0:SIZE, 0:SIZE]
    bars = np.where((x + y) // 16 % 2, 210.0, 90.0)[:, :, None]
    cover = coverage(kofi.photo)[:, :, None]
    picture = tmp_path_factory.mktemp("bars") / "bars.png"
    Image.fromarray(np.round(kofi.photo * cover + bars * (1 - cover)).astype(np.uint8)).save(picture)
    return Actor.open(picture, kofi.studio)


def test_lines_behind_the_head_stay_straight(barred: Actor) -> None:
    photo = barred.photo.astype(int)
    looked = behind(barred.photo)
    assert looked.mean() > 0.25
    for frame in barred.act(*(POSES[name] for name in TURNED)):
        assert np.abs(frame - photo)[looked].max() <= 2


def test_lines_stay_up_to_the_head(barred: Actor) -> None:
    seen = coverage(barred.photo) > SEEN
    beside = grown(seen, 6) & ~grown(seen, 4)
    assert np.abs(shown_behind(barred) - barred.photo)[beside].mean() < 8


@pytest.fixture(scope="module")
def frizzy(kofi: Actor, tmp_path_factory: pytest.TempPathFactory) -> Actor:
    """Crooked dark strands about the head, before a grainy wall."""
    y, x = np.mgrid[0:SIZE, 0:SIZE]
    seen = coverage(kofi.photo) > SEEN
    strands = grown(seen, 24) & ~seen & ((x + np.abs(y % 12 - 6) // 2) % 9 == 0) & (y < kofi.points[CHIN, 1] - 20)
    grainy = kofi.photo + np.random.default_rng(0).normal(0, 6, kofi.photo.shape)
    picture = tmp_path_factory.mktemp("frizz") / "frizz.png"
    Image.fromarray(np.where(strands[:, :, None], 40, grainy).clip(0, 255).astype(np.uint8)).save(picture)
    return Actor.open(picture, kofi.studio)


def test_frizz_goes_with_the_head(frizzy: Actor) -> None:
    photo = frizzy.photo.mean(2)
    seen = coverage(frizzy.photo) > SEEN
    wall = np.median(photo[behind(frizzy.photo)])
    strands = (photo < wall - 60) & grown(seen, 22) & ~grown(seen, 12) & (np.arange(SIZE) < 400)[:, None]
    assert strands.sum() > 300
    assert shown_behind(frizzy).mean(2)[strands].mean() > wall - 0.2 * (wall - photo[strands].mean())


def test_what_the_head_uncovers_has_the_grain_of_the_wall(frizzy: Actor) -> None:
    fine = np.abs(np.diff(shown_behind(frizzy), axis=1))
    uncovered = grown(coverage(frizzy.photo) < 0.9, 12) & ~grown(coverage(frizzy.photo) < 0.9, 4)
    wall = fine[behind(frizzy.photo)[:, 1:]].mean()
    assert 0.7 * wall < fine[uncovered[:, 1:]].mean() < 1.3 * wall


def test_the_photo_comes_back_with_its_frizz(frizzy: Actor) -> None:
    (frame,) = frizzy.act(POSES["photo"])
    assert np.square(frame.astype(float) - frizzy.photo).mean() < 255**2 / 10**4.5


def shown_behind(actor: Actor) -> NDArray[np.float64]:
    """[512, 512, 3] the background, also where the person hides it."""
    return actor.appearance.features["background"][0].transpose(1, 2, 0).astype(np.float64)


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
