"""The embedded pack's mouth: how wide it opens, what shows inside, and a smile that does not stay in a pucker."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import onnxruntime as ort
import pytest
from PIL import Image

from pipeline.packs.embedded.authoring.anatomy import (
    CHEEKS,
    FACE_OUTLINE,
    LOWER_INNER,
    MOUTH_CORNERS,
    OUTER_MOUTH_CORNERS,
    POINTS,
    UNIT_OFFSETS,
    UNITS,
    UPPER_INNER,
)  # fmt: skip
from pipeline.packs.embedded.authoring.expression_nodes import expression_nodes
from pipeline.packs.embedded.authoring.head_motion import Outline
from pipeline.packs.embedded.authoring.motion_basis import OF_LOWER, RANK
from pipeline.packs.embedded.authoring.mouth_units import SHAPES, mouth_units, undone_smile
from pipeline.packs.embedded.authoring.own_mouth import bite_line
from pipeline.packs.embedded.authoring.regions import MouthRegion
from pipeline.packs.embedded.authoring.skin_stretch import stretched
from pipeline.packs.embedded.authoring.tongue import tongue_out
from pipeline.packs.embedded.authoring.writer import Graph
from tests.faces.acting import FACES, POSES, Actor, Pose, in_pixels, open_studio

SAMPLE = Path(__file__).parents[3] / "samples" / "portrait.png"
UPPER, LOWER = UPPER_INNER[4], LOWER_INNER[4]


@pytest.fixture(scope="module")
def anna() -> Actor:
    return Actor.open(FACES / "anna.jpg", open_studio())


@pytest.fixture(scope="module")
def smiling(anna: Actor) -> Actor:
    return Actor.open(SAMPLE, anna.studio)


@pytest.fixture(scope="module")
def kofi(anna: Actor) -> Actor:
    return Actor.open(FACES / "kofi.jpg", anna.studio)


@pytest.mark.parametrize("name", sorted(SHAPES))
def test_reshaped_lips_are_even(name: str) -> None:
    unit = mouth_units()[UNITS.index(name)]
    for row in (UPPER_INNER, LOWER_INNER):
        np.testing.assert_allclose(unit[row, 1], unit[row[::-1], 1], atol=1e-6)
        np.testing.assert_allclose(unit[row, 0], -unit[row[::-1], 0], atol=1e-6)


@pytest.mark.parametrize("name", sorted(SHAPES))
def test_a_face_is_no_narrower_with_rounded_lips(name: str) -> None:
    """Skin that follows the lips pulled the jaws' outline in by 6 pixels a side."""
    index = UNITS.index(name)
    np.testing.assert_array_equal(mouth_units()[index][FACE_OUTLINE, 0], UNIT_OFFSETS[index][FACE_OUTLINE, 0])


def test_an_undone_smile_leaves_the_lips_as_far_apart() -> None:
    smile = undone_smile()
    np.testing.assert_allclose(smile[UPPER_INNER, 1], smile[LOWER_INNER, 1], atol=1e-6)
    left, right = OUTER_MOUTH_CORNERS
    assert smile[right, 0] - smile[left, 0] > 0.1


def test_skin_between_lips_and_face_is_a_membrane() -> None:
    """It follows lips less and less, nothing far away moves, and what is stretched already stays as it is."""
    still, lips = np.zeros((POINTS, 3), np.float32), [*UPPER_INNER, *LOWER_INNER, *MOUTH_CORNERS]
    pushed = stretched(still, dict.fromkeys(lips, (0.0, 0.3, 0.0)), evenness=1)[:, 1]
    below = pushed[[17, 18, 200]]
    assert (np.diff(below) < 0).all()
    assert below[0] > 0.2
    assert 0 < below[-1] < below[0]
    assert pushed[[10, *CHEEKS[2:]]].max() == 0
    again = stretched(pushed[:, None].repeat(3, 1), dict.fromkeys(lips, (0.3, 0.3, 0.3)), evenness=1)
    assert np.abs(again - pushed[:, None]).max() < 1e-3


def test_who_smiles_already_does_not_smile_twice(anna: Actor) -> None:
    """greta's corners rose and spread as much as anna's, whose mouth is straight, from where hers were already."""
    greta = Actor.open(FACES / "greta.jpg", anna.studio)

    def lift(actor: Actor) -> float:
        rest, smile = (in_pixels(points) for points in actor.keypoints([Pose({}), Pose({"mouthSmile": 1.0})]))
        eyes = float(np.linalg.norm(actor.points[33] - actor.points[263]))
        return float((rest - smile)[OUTER_MOUTH_CORNERS, 1].mean()) / eyes

    assert lift(greta) < 0.8 * lift(anna)


def test_opens_as_wide_as_asked(anna: Actor) -> None:
    (asked,) = anna.keypoints([Pose({"jawOpen": 0.5})])
    (face,) = anna.studio.finder.find(anna.act(Pose({"jawOpen": 0.5}))[0])
    wanted = in_pixels(asked)[LOWER, 1] - in_pixels(asked)[UPPER, 1]
    assert wanted > 20
    assert face.points[LOWER, 1] - face.points[UPPER, 1] == pytest.approx(wanted, abs=3)


def test_the_inside_is_deep_red_under_teeth(anna: Actor) -> None:
    pose = Pose({"jawOpen": 0.5})
    (keypoints,), (frame,) = anna.keypoints([pose]), anna.act(pose)
    points = in_pixels(keypoints)
    x, top, bottom = int(points[UPPER, 0]), int(points[UPPER, 1]), int(points[LOWER, 1])
    column = frame[top:bottom, x - 3 : x + 4].astype(float).mean(1)
    darkest = column[column.sum(1).argmin()]
    assert 25 < darkest[0] < 110
    assert darkest[0] > 1.5 * darkest[1]
    assert column[: len(column) // 3].mean(1).max() > 2 * darkest.mean()


def test_opening_by_degrees_changes_the_picture_by_degrees(anna: Actor) -> None:
    frames = anna.act(*(Pose({"jawOpen": float(part)}) for part in np.linspace(0.02, 0.5, 13)))
    corners = anna.points[MOUTH_CORNERS, :2]
    x, y = corners.mean(0).astype(int)
    window = np.s_[y - 40 : y + 70, x - 60 : x + 60]
    steps = [np.abs(b[window].astype(float) - a[window]).mean() for a, b in pairwise(frames)]
    assert min(steps) > 0
    assert max(steps) < 2 * float(np.median(steps))


@pytest.mark.parametrize("face", ["anna", "tom"])
def test_the_line_between_the_lips_leaves_no_notch_beside_an_open_mouth(face: str, anna: Actor) -> None:
    actor, pose = Actor.open(FACES / f"{face}.jpg", anna.studio), Pose({"jawOpen": 0.5})
    (keypoints,), (frame,) = actor.keypoints([pose]), actor.act(pose)
    points, grey = in_pixels(keypoints)[:, :2], frame.astype(float).mean(2)
    across = points[MOUTH_CORNERS[1]] - points[MOUTH_CORNERS[0]]
    across /= np.linalg.norm(across)
    down = np.array([-across[1], across[0]])
    for corner, side in zip(MOUTH_CORNERS, (-1, 1), strict=True):
        for beside in (2, 3, 4):
            column = points[corner] + side * beside * across + np.arange(-4, 12)[:, None] * down
            x, y = column.round().astype(int).T
            assert grey[y, x].min() > 0.82 * np.median(grey[y, x])


@pytest.mark.parametrize(("fold", "light"), [((206, 216), 0.88), ((426, 436), 0.815)])
def test_the_fold_of_a_smile_is_no_dark_line_beside_a_pucker(
    fold: tuple[int, int], light: float, smiling: Actor
) -> None:
    """0.77 and 0.80 of the skin's light with half of its dark taken out (the right cheek is shaded), 0.55 with all."""
    (keypoints,), (frame,) = smiling.keypoints([POSES["oo"]]), smiling.act(POSES["oo"])
    x, y = in_pixels(keypoints)[list(fold), :2].mean(0).round().astype(int)
    across = frame[y - 4 : y + 5, x - 14 : x + 15].mean(2)
    assert across.min(1).mean() > light * np.median(across)


def test_teeth_behind_a_pucker_look_like_no_lip(smiling: Actor) -> None:
    """A row of 0.73 of the lip's light looked like a moustache below it."""
    (keypoints,), (frame,) = smiling.keypoints([POSES["oo"]]), smiling.act(POSES["oo"])
    x, y = in_pixels(keypoints)[UPPER, :2].astype(int)
    lip, inside = (frame[y + rows, x - 6 : x + 7].astype(float).mean() for rows in ([-5, -4, -3, -2], [1, 2, 3]))
    assert inside < 0.45 * lip


def test_teeth_go_behind_lips_that_round_and_are_no_grey_glass_in_between(smiling: Actor) -> None:
    """They grew darker where they were, in steps of 0.71 and 0.51."""
    poses = [Pose({"mouthPucker": 0.8 * k, "mouthFunnel": 0.4 * k, "jawOpen": 0.25}) for k in np.linspace(0, 1, 11)]
    light = []
    for keypoints, frame in zip(smiling.keypoints(poses), smiling.act(*poses), strict=True):
        x, y = in_pixels(keypoints)[UPPER, :2].astype(int)
        light.append(frame[y + 3 : y + 9, x - 12 : x + 13].mean((1, 2)).max())
    assert light[-1] < 0.4 * light[0]
    assert all(step > 0.8 * light[0] or step < 0.4 * light[0] for step in light)


def test_the_dark_corner_of_a_smile_is_no_dot_beside_a_pucker(kofi: Actor) -> None:
    """0.80 of the skin's light, as his lips are no further apart than in his smile."""
    (keypoints,), (frame,) = kofi.keypoints([POSES["oo"]]), kofi.act(POSES["oo"])
    x, y = (int(value) for value in in_pixels(keypoints)[MOUTH_CORNERS[1], :2])
    beside = frame[y - 6 : y + 7, x + 3 : x + 10].mean(2)
    assert beside.min() > 0.86 * np.median(beside)


def test_moving_cheeks_do_not_dent_the_outline_between_its_points(anna: Actor) -> None:
    """Half-way between two points of the outline of a face half turned away its skin went 15.7 pixels astray."""
    actor = Actor.open(FACES / "amara.jpg", anna.studio)
    (keypoints,) = actor.keypoints([POSES["oo"]])
    moved = in_pixels(keypoints)[:, :2] - actor.points[:, :2]
    values = np.zeros((POINTS, RANK), np.float32)
    values[:, OF_LOWER : OF_LOWER + 2] = moved
    g = Graph("outline")
    points, motions = g.input("points", [POINTS, 3]), g.input("motions", [POINTS, RANK])
    nodes = expression_nodes(g, points, motions, Outline(points), MouthRegion(g, points))
    after = [*FACE_OUTLINE[1:], FACE_OUTLINE[0]]
    between = (points.take(FACE_OUTLINE) + points.take(after))[:, 0:2] * 0.5
    (field,) = nodes.fields(between, len(after), "common")
    g.output("field", field[:, 0:2], [len(after), 2])
    session = ort.InferenceSession(g.model().SerializeToString(), providers=["CPUExecutionProvider"])
    (found,) = session.run(None, {"points": actor.points.astype(np.float32), "motions": values})
    assert np.abs(found - (moved[FACE_OUTLINE] + moved[after]) / 2).max() < 8


@pytest.mark.parametrize(
    ("upper", "lower", "attached", "two_rows"),
    [(0.8, 0.4, 0.0, 1.0), (0.8, 0.0, 0.0, 0.0), (0.6, 0.7, 0.0, 0.0), (0.6, 0.7, 1.0, 1.0), (0.0, 0.8, 0.0, 0.0)],
)
def test_two_rows_are_parted_by_a_dark_line_below_the_brighter_or_one_at_the_lip(
    upper: float, lower: float, attached: float, two_rows: float
) -> None:
    depth = np.linspace(0, 1, 40, dtype=np.float32)[:, None] * np.ones((1, 30), np.float32)
    g = Graph("bite")
    bright = g.input("bright", [40, 30])
    everywhere, at_lip = g.constant(np.ones_like(depth)), g.constant(np.float32(attached))
    line, clear = bite_line(g, bright, g.constant(depth), everywhere, at_lip)
    g.output("line", line.reshape(1), [1])
    g.output("clear", clear.reshape(1), [1])
    session = ort.InferenceSession(g.model().SerializeToString(), providers=["CPUExecutionProvider"])
    shown = np.where(depth < 0.5, upper, np.where(depth > 0.7, lower, 0)).astype(np.float32)
    (found,), (certain,) = session.run(None, {"bright": shown})
    assert certain == pytest.approx(two_rows, abs=0.01)
    if two_rows:
        assert found == pytest.approx(0.6, abs=0.06)


def test_no_teeth_hang_in_the_middle_of_a_mouth_opened_wider(anna: Actor) -> None:
    lina = Actor.open(FACES / "lina.jpg", anna.studio)  # shows both her rows, a dark gap between them
    pose = Pose({"jawOpen": 0.5})
    (keypoints,), (frame,) = lina.keypoints([pose]), lina.act(pose)
    points = in_pixels(keypoints)
    x, top, bottom = int(points[UPPER, 0]), int(points[UPPER, 1]), int(points[LOWER, 1])
    column = frame[top:bottom, x - 8 : x + 9].astype(float).mean((1, 2))
    assert bottom - top > 25
    assert column[int(len(column) * 0.3) : int(len(column) * 0.6)].max() < 0.5 * column[: len(column) // 4].max()


def test_teeth_are_lit_like_the_face_and_warmer_than_grey(anna: Actor) -> None:
    (keypoints,), (frame,) = anna.keypoints([POSES["oh"]]), anna.act(POSES["oh"])
    x, y = in_pixels(keypoints)[UPPER, :2].astype(int)
    row = frame[y + 2 : y + 6, x - 8 : x + 9].reshape(-1, 3).astype(float)
    teeth = row[row.sum(1).argsort()][-30:-10].mean(0)
    cheeks = np.mean([anna.photo[int(anna.points[k, 1]), int(anna.points[k, 0])] for k in CHEEKS], 0)
    assert 0.85 < teeth.mean() / cheeks.mean() < 1.15
    assert teeth[0] > 1.15 * teeth[2]
    assert teeth[0] - teeth[2] < 0.35 * teeth.mean()


def test_a_row_of_the_portrait_that_hangs_in_shadow_is_not_carried_into_a_wide_mouth(anna: Actor) -> None:
    kofi = Actor.open(FACES / "kofi.jpg", anna.studio)
    (keypoints,), (frame,) = kofi.keypoints([POSES["oh"]]), kofi.act(POSES["oh"])
    x, y = in_pixels(keypoints)[UPPER, :2].astype(int)
    columns = frame[y + 2 : y + 5, x - 12 : x + 13].astype(float).mean((0, 2))
    assert columns.min() > 0.75 * columns.max()


def test_teeth_of_the_portrait_do_not_stay_on_its_lower_lip(anna: Actor) -> None:
    """Its landmarks stand above amara's lower teeth; they were 43 grey levels off her closed lip."""
    amara = Actor.open(FACES / "amara.jpg", anna.studio)
    (keypoints,), (frame,) = amara.keypoints([POSES["closed"]]), amara.act(POSES["closed"])
    x, y = in_pixels(keypoints)[LOWER, :2].astype(int)
    lip = frame[y + 1 : y + 5, x - 20 : x + 21].astype(float)
    assert np.abs(lip - np.median(lip, (0, 1))).max() < 25


def test_teeth_show_in_a_round_mouth_whose_own_end_high(anna: Actor) -> None:
    """maya shows two rows in a smile: her own upper teeth end where her lip comes to when she speaks. There was but
    dark, 0.11 of her cheeks' light."""
    maya = Actor.open(FACES / "maya.jpg", anna.studio)
    (keypoints,), (frame,) = maya.keypoints([POSES["oh"]]), maya.act(POSES["oh"])
    x, y = in_pixels(keypoints)[UPPER, :2].astype(int)
    columns = frame[y + 2 : y + 5, x - 12 : x + 13].astype(float).mean((0, 2))
    cheeks = np.mean([maya.photo[int(maya.points[k, 1]), int(maya.points[k, 0])] for k in CHEEKS])
    assert columns.mean() > 0.7 * cheeks
    assert columns.min() > 0.7 * columns.max()


def test_the_tongue_shows_its_tip_when_asked_and_nothing_else_moves(anna: Actor) -> None:
    inside, out = Pose({**POSES["th"].units, "tongueOut": 0.0}), POSES["th"]
    (keypoints,), frames = anna.keypoints([out]), anna.act(inside, out)
    without, tongue = (frame.astype(float) for frame in frames)
    points = in_pixels(keypoints)[:, :2]
    x, y = (points[LOWER] * 0.65 + points[UPPER] * 0.35).astype(int)
    tip = tongue[y - 1 : y + 2, x - 4 : x + 5].mean((0, 1))
    assert tip[0] > 1.3 * tip[1]
    assert tip[0] > 1.3 * without[y - 1 : y + 2, x - 4 : x + 5].mean((0, 1))[0]
    corners, changed = points[MOUTH_CORNERS], np.argwhere(np.abs(tongue - without).max(2) > 0)[:, ::-1]
    assert (changed > corners.min(0) - 30).all()
    assert (changed < corners.max(0) + 40).all()


def test_the_tongue_is_as_light_in_a_narrow_mouth_as_in_a_wide_one(kofi: Actor) -> None:
    poses = [POSES["th"], Pose({"jawOpen": 0.6, "tongueOut": 0.5})]
    tips = []
    for keypoints, frame in zip(kofi.keypoints(poses), kofi.act(*poses), strict=True):
        points = in_pixels(keypoints)[:, :2]
        x, y = (points[LOWER] * 0.65 + points[UPPER] * 0.35).astype(int)
        tips.append(float(frame[y - 1 : y + 2, x - 4 : x + 5, 0].mean()))
    narrow, wide = tips
    assert 0.85 * wide < narrow < 1.15 * wide


def test_the_tongue_is_no_hole_in_a_picture_without_colours(anna: Actor, tmp_path: Path) -> None:
    with Image.open(FACES / "kofi.jpg") as opened:
        opened.convert("L").save(tmp_path / "grey.png")
    grey = Actor.open(tmp_path / "grey.png", anna.studio)
    (keypoints,), (frame,) = grey.keypoints([POSES["th"]]), grey.act(POSES["th"])
    points = in_pixels(keypoints)[:, :2]
    x, y = (points[LOWER] * 0.65 + points[UPPER] * 0.35).astype(int)
    assert frame[y - 1 : y + 2, x - 4 : x + 5].mean() > 70


def test_a_turn_of_the_head_or_the_eyes_is_not_taken_for_the_tongue(anna: Actor) -> None:
    g = Graph("tongue")
    source, driving = g.input("source", [POINTS, 2]), g.input("driving", [POINTS, 2])
    g.output("out", tongue_out(g, driving - source, driving).reshape(1), [1])
    session = ort.InferenceSession(g.model().SerializeToString(), providers=["CPUExecutionProvider"])
    turn, gaze = Pose({"eyeBlink": 0.5}, yaw=12, pitch=-8, roll=8), POSES["gaze left"]
    asked = {0.0: [turn, gaze], 0.5: [Pose({"tongueOut": 0.5}, yaw=-12), Pose({"tongueOut": 0.5, "eyeLookUp": 0.7})]}
    at = anna.appearance.source.keypoints[:, :2]
    for value, poses in asked.items():
        for keypoints in anna.keypoints(poses):
            (read,) = session.run(None, {"source": at, "driving": keypoints[:, :2]})
            assert read[0] == pytest.approx(value, abs=0.05)
