"""A section read into a dataclass."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from pipeline.errors import PackError
from pipeline.packs.section import Section


@dataclass(frozen=True)
class Sample:
    count: int
    rate: float
    name: str
    wanted: bool
    points: tuple[int, ...]
    levels: tuple[float, ...]
    other: str = "given"


GOOD = {"count": 3, "rate": 2, "name": "a", "wanted": True, "points": [1, 2], "levels": [0.5, 1]}


def test_fields_are_read_by_their_kind():
    found = Section(GOOD, "pack.sample").record(Sample, other="so")
    assert found == Sample(3, 2.0, "a", True, (1, 2), (0.5, 1.0), "so")
    assert isinstance(found.rate, float)


@pytest.mark.parametrize(
    ("name", "value", "wanted"),
    [
        ("count", 1.5, "a whole number"),
        ("count", True, "a whole number"),
        ("rate", "2", "a number"),
        ("name", 3, "text"),
        ("wanted", 1, "true or false"),
        ("points", [0.5], "a list of whole numbers"),
        ("levels", None, "a list of numbers"),
    ],
)
def test_a_field_of_another_kind_is_named(name, value, wanted):
    with pytest.raises(PackError, match=rf"pack\.sample\.{name} must be {wanted}"):
        Section({**GOOD, name: value}, "pack.sample").record(Sample, other="so")
