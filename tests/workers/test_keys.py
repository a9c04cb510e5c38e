"""Which artifacts a setting changes: jobs share what does not depend on where they differ."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

import pytest

from pipeline import Settings
from workers.keys import Keys
from workers.order import Order

ORDER = Order(
    job="j",
    settings=Settings().to_json(),
    portrait="input:p",
    audio="input:a",
    portrait_name="p.png",
    audio_name="a.wav",
    pack="embedded",
    pack_identity="embedded@1",
    code="1",
)
NAMES = ("sound", "soundtrack", "motion", "portrait", "appearance", "source", "plan", "film")


@pytest.mark.parametrize(
    ("setting", "value", "changed"),
    [
        ("seed", 1, {"motion", "plan", "film"}),
        ("guidance", 1.5, {"motion", "plan", "film"}),
        ("smoothing", 0.9, {"motion", "plan", "film"}),
        ("strength", 0.5, {"plan", "film"}),
        ("preset", "preview", {"plan", "film"}),
        ("frame", "crop", {"film"}),
        ("max_side", 640, {"portrait", "plan", "film"}),
        ("face", 1, {"portrait", "appearance", "source", "plan", "film"}),
    ],
)
def test_a_setting_changes_what_is_made_with_it(setting: str, value: Any, changed: set[str]) -> None:
    one, other = Keys(ORDER), Keys(replace(ORDER, settings={**ORDER.settings, setting: value}))
    assert {name for name in NAMES if getattr(one, name) != getattr(other, name)} == changed


def test_an_order_survives_json() -> None:
    assert asdict(Order.from_json(ORDER.to_json())) == asdict(ORDER)
