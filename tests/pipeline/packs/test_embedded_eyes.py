"""Closed eyes of the embedded pack on a few faces of the portrait set."""

from __future__ import annotations

import numpy as np
import pytest

from pipeline.packs.embedded.authoring.anatomy import EYES, Eye
from pipeline.values import U8
from tests.faces.acting import FACES, POSES, Actor, open_studio
from tests.faces.measures.blackbox import F64
from tests.faces.measures.judging import Judge
from tests.faces.measures.steadiness import bilinear

SHOWN = ["anna", "elin", "dele"]
"""Long lashes; eyes that look aside, half on an iris and half on white; dark skin behind glasses."""

LIT = "marco"
"""A lamp is mirrored in the glasses, below one eye."""


@pytest.fixture(scope="module")
def closed() -> dict[str, tuple[Actor, U8]]:
    """Each actor and its frame with closed eyes."""
    studio = open_studio()
    actors = [Actor.open(FACES / f"{name}.jpg", studio) for name in [*SHOWN, LIT]]
    return {actor.name: (actor, actor.act(POSES["blink"])[0]) for actor in actors}


@pytest.mark.parametrize("name", ["anna", "dele"])
def test_at_rest_the_corners_of_the_eyes_are_the_photo_s(closed: dict[str, tuple[Actor, U8]], name: str) -> None:
    """Lids meet at the corners, so that the skin of closed ones was drawn there always: 58 grey levels off on anna."""
    actor = closed[name][0]
    (rest,) = actor.act(POSES["photo"])
    for eye in EYES:
        for x, y in actor.points[eye.corners, :2].astype(int):
            part = np.s_[y - 12 : y + 12, x - 12 : x + 12]
            assert np.abs(rest[part].astype(int) - actor.photo[part]).max() < 20


def columns(actor: Actor, frame: U8, eye: Eye) -> F64:
    """[25, 66] grey levels of an eye from above its middle down to the cheek, in steps of a hundredth of its width."""
    left, right = actor.points[eye.corners, :2] - 0.5
    across = right - left
    down = np.array([-across[1], across[0]])
    u, v = np.meshgrid(np.linspace(-0.3, 0.3, 25), np.linspace(-0.1, 0.55, 66), indexing="ij")
    places = (left + right) / 2 + u[..., None] * across + v[..., None] * down
    return bilinear(frame.astype(np.float64), places).mean(2)


@pytest.mark.parametrize("name", SHOWN)
def test_below_the_line_of_a_closed_eye_is_skin_without_a_second_line(
    closed: dict[str, tuple[Actor, U8]], name: str
) -> None:
    """The lower lid's lashes stayed behind as a dark arc, 6 to 20 grey levels deep."""
    for eye in EYES:
        grey = columns(*closed[name], eye)
        depth = []
        for column in grey:
            below = column[column.argmin() + 4 : column.argmin() + 25]
            depth.append((np.maximum.accumulate(below) - below).max())
        assert np.median(depth) < 3


@pytest.mark.parametrize("name", ["anna", "elin"])
def test_the_line_of_a_closed_eye_is_as_dark_on_white_as_on_an_iris(
    closed: dict[str, tuple[Actor, U8]], name: str
) -> None:
    """It was black over the iris, grey over the white (0.13 on elin), and at 0.1 of the skin's light like eyeliner."""
    for eye in EYES:
        grey = columns(*closed[name], eye)
        line = grey.min(1) / np.median(grey[:, -8:])
        trend = np.polyval(np.polyfit(np.arange(len(line)), line, 1), np.arange(len(line)))
        assert (line - trend).std() < 0.09
        assert 0.18 < line.min() < 0.5


def test_a_lamp_in_the_glasses_is_not_carried_onto_the_lid(closed: dict[str, tuple[Actor, U8]]) -> None:
    """The lid above it was 1.21 times as light as the middle one of its columns."""
    for eye in EYES:
        lid = columns(*closed[LIT], eye)[:, :5].mean(1)
        assert lid.max() < 1.1 * np.median(lid)


@pytest.mark.parametrize(("name", "least"), [("dele", 0.59), ("elin", 0.66)])
def test_closed_eyes_read_closed(closed: dict[str, tuple[Actor, U8]], name: str, least: float) -> None:
    """dele's read 0.55, elin's 0.65."""
    actor, frame = closed[name]
    points = actor.found(frame)
    assert points is not None
    assert Judge.open().read(points, "eyeBlink") > least
