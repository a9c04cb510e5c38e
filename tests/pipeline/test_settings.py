"""Settings are checked once, at the edge, and survive JSON."""

from __future__ import annotations

import json
from fractions import Fraction

import pytest

from pipeline.errors import SettingsError
from pipeline.settings import Settings, parse_background
from pipeline.stages.film_format import exact_fps


def test_json_both_ways() -> None:
    settings = Settings(fps=exact_fps("29.97"), keyframe_fps=2.5, seed=7, face=2, background=(1, 2, 3))
    assert Settings.from_json(json.loads(json.dumps(settings.to_json()))) == settings


def test_every_default_survives_json() -> None:
    assert Settings.from_json(Settings().to_json()) == Settings()


@pytest.mark.parametrize(
    ("text", "rate"),
    [
        ("25", 25),
        (25, 25),
        (12.5, Fraction(25, 2)),
        ("29.97", Fraction(30000, 1001)),
        ("30000/1001", Fraction(30000, 1001)),
    ],
)
def test_rates_are_exact(text: str, rate: Fraction) -> None:
    assert exact_fps(text) == rate


@pytest.mark.parametrize("text", ["0", "61", "abc", "1/0", "-5", "nan"])
def test_bad_rates(text: str) -> None:
    with pytest.raises(SettingsError, match="fps"):
        exact_fps(text)


@pytest.mark.parametrize(
    ("text", "colour"),
    [("grey", (128, 128, 128)), ("#102030", (16, 32, 48)), ("102030", (16, 32, 48)), ("1,2,3", (1, 2, 3))],
)
def test_backgrounds(text: str, colour: tuple[int, int, int]) -> None:
    assert parse_background(text) == colour


@pytest.mark.parametrize("text", ["nocolour", "1,2", "1,2,300", "#12", ""])
def test_bad_backgrounds(text: str) -> None:
    with pytest.raises(SettingsError, match="background"):
        parse_background(text)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("strength", -0.1),
        ("strength", 2.1),
        ("strength", float("nan")),
        ("seed", -1),
        ("seed", 2**63),
        ("keyframe_fps", 0),
        ("guidance", 11),
        ("smoothing", 1),
        ("smoothing", -0.1),
        ("max_side", 63),
        ("face", 0),
        ("frame", "window"),
        # From JSON anything may come.
        ("seed", 1.5),
        ("seed", True),
        ("seed", None),
        ("strength", "1"),
        ("face", 1.0),
        ("max_side", 100.5),
        ("preset", None),
        ("fps", None),
        ("background", None),
        ("background", "red"),
        ("background", [1, 2, True]),
        ("synthetic_note", "no"),
    ],
)
def test_values_out_of_range_are_named(name: str, value: object) -> None:
    with pytest.raises(SettingsError, match=name):
        Settings(**{name: value})  # type: ignore[arg-type]


def test_unknown_settings_are_named() -> None:
    with pytest.raises(SettingsError, match="colour"):
        Settings.from_json({"colour": "red"})
