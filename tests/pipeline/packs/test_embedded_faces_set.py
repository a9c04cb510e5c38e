"""The embedded pack's picture on a few faces of the portrait set; the whole set: `python -m tests.faces.measure`."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

from pipeline.faces.finder import FaceFinder
from pipeline.packs.embedded.authoring.anatomy import EYES, Eye
from tests.faces.acting import FACES, POSES, SIZE, Actor, face_files, in_pixels, open_studio
from tests.faces.measures.artefacts import detect, patches
from tests.faces.measures.blackbox import F64, Coded, Mask, coordinate_pictures, decoded, grown, inside, openings
from tests.faces.measures.judging import Judge, rigid_error, sweep
from tests.faces.measures.steadiness import bilinear, steadiness
from tests.faces.measures.triangles import delaunay, face_triangles, flips

SHOWN = ["anna", "kofi"]
"""A closed mouth before long hair; a smile with teeth on dark skin."""


@pytest.fixture(scope="module")
def actors() -> dict[str, Actor]:
    studio = open_studio()
    return {name: Actor.open(FACES / f"{name}.jpg", studio) for name in SHOWN}


@pytest.fixture(scope="module")
def judge() -> Judge:
    return Judge.open()


@pytest.fixture(scope="module")
def finder(actors: dict[str, Actor]) -> FaceFinder:
    return actors[SHOWN[0]].studio.finder


@pytest.mark.parametrize("name", [path.stem for path in face_files()])
def test_one_face_is_found_in_every_portrait(name: str, finder: FaceFinder) -> None:
    with Image.open(FACES / f"{name}.jpg") as opened:
        (face,) = finder.find(np.asarray(opened.convert("RGB")))
    assert face.outside == 0


@pytest.mark.parametrize(
    ("name", "unit"), [("anna", "mouthSmile"), ("anna", "eyeBlink"), ("kofi", "jawOpen"), ("kofi", "eyeBlink")]
)
def test_reads_what_was_asked(actors: dict[str, Actor], judge: Judge, name: str, unit: str) -> None:
    swept = sweep(actors[name], judge, unit, steps=4)
    assert swept.correlation > 0.9
    assert swept.gain > 0.2
    assert max(rigid_error(actors[name].points, points) for points in swept.points) < 5


@pytest.mark.parametrize("unit", ["mouthPucker", "mouthFunnel"])
@pytest.mark.parametrize("name", SHOWN)
def test_lips_round_by_degrees(actors: dict[str, Actor], judge: Judge, name: str, unit: str) -> None:
    """The judge's scores of these jump, also for landmarks moved without a picture; its evidence does not."""
    swept = sweep(actors[name], judge, unit)
    assert swept.fidelity > 0.9
    assert np.ptp(swept.ideal) > 2
    assert np.ptp(swept.evidence) > 0.4 * np.ptp(swept.ideal)


def opening(points: F64, eye: Eye) -> Mask:
    """[512, 512] what lies a pixel and more inside the lids."""
    return ~grown(~inside(points[[*eye.upper_edge, *eye.lower_edge[::-1]], :2]), 1)


@pytest.mark.parametrize("name", SHOWN)
def test_eyes_that_look_aside_are_as_light_as_the_photo(actors: dict[str, Actor], name: str) -> None:
    actor = actors[name]
    poses = [POSES[f"gaze {side}"] for side in ("left", "right", "up", "down")]
    for keypoints, frame in zip(actor.keypoints(poses), actor.act(*poses), strict=True):
        for eye in EYES:
            own = np.percentile(actor.photo.mean(2)[opening(actor.points, eye)], [5, 97])
            dark, bright = np.percentile(frame.mean(2)[opening(in_pixels(keypoints), eye)], [5, 97])
            assert dark > 0.6 * own[0]
            assert bright < own[1] + 10


@pytest.mark.parametrize("name", SHOWN)
def test_closed_lids_have_the_grain_of_skin(actors: dict[str, Actor], name: str) -> None:
    actor = actors[name]
    (closed,) = actor.act(POSES["blink"])
    for eye in EYES:
        corners = actor.points[eye.corners, :2]
        width, middle = float(np.linalg.norm(corners[1] - corners[0])), round(corners[:, 0].mean())
        columns = slice(middle - int(0.2 * width), middle + int(0.2 * width))
        lid, cheek = actor.points[eye.upper[3], 1], actor.points[eye.lower[3], 1] + 0.25 * width
        grain = [
            np.abs(np.diff(closed[int(top) : int(top + 0.12 * width) + 1, columns].mean(2), axis=1)).mean()
            for top in (lid, cheek)
        ]
        assert 0.5 * grain[1] < grain[0] < 2 * grain[1]


@pytest.fixture(scope="module")
def anna(actors: dict[str, Actor]) -> Coded:
    return Coded.of(actors["anna"])


@pytest.mark.parametrize("pose", ["closed", "aa", "yaw -12", "blink"])
def test_no_tear_no_fold_no_strange_colour(anna: Coded, pose: str) -> None:
    actor = anna.actor
    (keypoints,), (frame,) = actor.keypoints([POSES[pose]]), actor.act(POSES[pose])
    shown, opened = anna.shown(keypoints), openings(keypoints, actor.appearance.source.keypoints)
    found = detect(actor.photo, frame, shown.backward, opened | shown.made_up)
    assert shown.made_up.mean() < 0.25
    assert (patches(found.tears), patches(found.folds), patches(found.outliers)) == (0, 0, 0)
    assert flips(actor.points, in_pixels(keypoints)) == 0


@pytest.mark.parametrize("name", ["kofi", "boris", "dele", "tunde", "zola"])
def test_no_pose_turns_skin_over(actors: dict[str, Actor], name: str) -> None:
    """Up to six triangles of a face were: under the lower lip, whose edge went past the skin, beside its corners."""
    actor = actors.get(name) or Actor.open(FACES / f"{name}.jpg", actors[SHOWN[0]].studio)
    driven = zip(POSES, actor.keypoints(list(POSES.values())), strict=True)
    turned = {pose: flips(actor.points, in_pixels(keypoints)) for pose, keypoints in driven}
    assert {pose: count for pose, count in turned.items() if count} == {}


def test_a_rounded_mouth_is_no_damage(actors: dict[str, Actor]) -> None:
    """There were folds at the far cheek, which points behind it held, and a stain where the fold of a smile was."""
    amara = Actor.open(FACES / "amara.jpg", actors[SHOWN[0]].studio)
    coded, poses = Coded.of(amara), [POSES["oo"], POSES["oh"]]
    for keypoints, frame in zip(amara.keypoints(poses), amara.act(*poses), strict=True):
        allowed = openings(keypoints, amara.appearance.source.keypoints)
        assert detect(amara.photo, frame, coded.backward(keypoints), allowed).count == 0


def test_a_film_is_steady(anna: Coded) -> None:
    poses = [POSES[name] for name in ("closed", "ee", "aa")]
    steady = steadiness(anna.actor, anna, anna.actor.keypoints(poses), every=1)
    assert steady.still < 0.5
    assert steady.still_part > 0.05
    assert steady.background < 0.5
    assert steady.shimmer < 6


def still_map() -> F64:
    return np.stack(np.meshgrid(np.arange(SIZE), np.arange(SIZE)), 2).astype(np.float64)


def smooth_map() -> F64:
    """A gentle stretch and turn, as of a head."""
    x, y = np.moveaxis(still_map(), 2, 0)
    return np.stack([x + 6 * np.sin(y / 60), y + 5 * np.cos(x / 70)], 2)


def hits(actor: Actor, backward: F64, damage: F64 | None = None) -> tuple[int, int, int]:
    shown = bilinear(actor.photo.astype(np.float64), backward)
    frame = np.clip(shown + (0 if damage is None else damage), 0, 255).astype(np.uint8)
    found = detect(actor.photo, frame, backward, np.zeros((SIZE, SIZE), bool))
    return patches(found.tears), patches(found.folds), patches(found.outliers)


def test_detector_is_silent_on_a_smooth_warp(actors: dict[str, Actor]) -> None:
    assert hits(actors["kofi"], smooth_map()) == (0, 0, 0)


def test_detector_finds_a_tear(actors: dict[str, Actor]) -> None:
    torn = smooth_map()
    torn[200:300, 256:, 0] += 9
    assert hits(actors["kofi"], torn)[0] == 1


def test_detector_finds_a_fold(actors: dict[str, Actor]) -> None:
    folded = smooth_map()
    folded[240:252, 100:200] = folded[240:252, 100:200][::-1]
    assert hits(actors["kofi"], folded)[1] >= 1


@pytest.mark.parametrize("shade", [-60, 60])
def test_detector_finds_a_crack_one_pixel_wide(actors: dict[str, Actor], shade: int) -> None:
    actor, damage = actors["anna"], np.zeros((SIZE, SIZE, 3))
    x, y = actor.points[205, :2].astype(int)  # the middle of a cheek
    damage[np.arange(y - 10, y + 10), np.arange(x - 10, x + 10)] = shade
    assert hits(actor, smooth_map(), damage)[2] == 1


def test_an_opening_is_no_damage_and_hides_none_beside_it(actors: dict[str, Actor]) -> None:
    photo = actors["kofi"].photo
    opened = smooth_map()
    opened[200:240, 100:200] = opened[200:240, 100:200][::-1, ::-1] + 300
    allowed = np.zeros((SIZE, SIZE), bool)
    allowed[200:240, 100:200] = True
    shown = bilinear(photo.astype(np.float64), opened).round().astype(np.uint8)
    assert detect(photo, shown, opened, allowed).count == 0
    opened[242:250, 100:200] = opened[242:250, 100:200][::-1]
    assert patches(detect(photo, shown, opened, allowed).folds) >= 1


def test_a_shadow_moves_nothing_and_hides_no_fold(actors: dict[str, Actor]) -> None:
    """Shade of a tenth was taken for a jump of a whole wave."""
    folded = smooth_map()
    folded[240:252, 100:200] = folded[240:252, 100:200][::-1]
    shade = np.ones((SIZE, SIZE, 1))
    shade[200:300, 80:300] = np.linspace(1, 0.6, 220)[:, None]
    pictures = [picture[0].transpose(1, 2, 0).astype(np.float64) for picture in coordinate_pictures()]
    for backward, folds in ((smooth_map(), False), (folded, True)):
        found = decoded(*(bilinear(picture, backward).astype(np.float32) * shade for picture in pictures))
        inner = (slice(10, -10), slice(10, -10))
        assert np.abs(found - backward)[inner].max() < 0.5
        assert (hits(actors["kofi"], found)[1] > 0) == folds


def test_triangles_cover_the_face_once_and_turn_over_when_a_point_crosses(actors: dict[str, Actor]) -> None:
    square = delaunay(np.array([[0, 0], [2, 0], [2.2, 2], [0, 2.1], [1, 0.9]]))
    assert len(square) == 4
    triangles = face_triangles()
    assert len(triangles) > 800
    points = actors["anna"].points
    assert flips(points, points) == 0
    crossed = points.copy()
    crossed[205, :2] += [0, 60]  # a cheek's point, below the chin's
    assert flips(points, crossed) > 0
