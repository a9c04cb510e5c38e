"""The report: JSON-able, with counts and lists of what was repaired."""

from __future__ import annotations

import json

import numpy as np
import pytest

from pipeline.report import Report, versions
from pipeline.values import Crop, Portrait, Repair
from tests.fakes import FakeModel


def test_repairs_are_listed_by_kind_and_frame() -> None:
    report = Report(repairs=[Repair(3, "rendered again", ("flat",)), Repair(9, "carried on", ("a", "b"))])
    frames = json.loads(json.dumps(report.to_json()))["frames"]
    assert frames["rendered_again"] == [{"frame": 3, "reasons": ["flat"]}]
    assert frames["carried_on"] == [{"frame": 9, "reasons": ["a", "b"]}]


def test_time_in_a_stage_adds_up() -> None:
    report = Report()
    for _ in range(2):
        with report.timing("generator", FakeModel(dict)):
            pass
    stage = report.to_json()["stages"]["generator"]
    assert (stage["provider"], stage["rungs"], stage["falls"]) == ("CPUExecutionProvider", ["cpu"], [])
    assert stage["seconds"] > 0


@pytest.mark.parametrize(("frame", "notes"), [("portrait", 1), ("crop", 0)])
def test_a_shrunken_picture_is_said_once(frame: str, notes: int) -> None:
    portrait = Portrait(
        picture=np.zeros((480, 640, 3), np.uint8),
        pixels=np.zeros((8, 8, 3), np.uint8),
        landmarks=np.zeros((478, 3), np.float32),
        crop=Crop(np.eye(2, 3)),
        stored_size=(3840, 2880),
        face_box=(0, 0, 100, 100),
    )
    report = Report(settings={"frame": frame})
    report.describe_portrait(portrait)
    data = report.to_json()
    assert data["portrait"]["shrunk"]
    assert data["notes"] == ["the picture was shrunk from 3840x2880 to 640x480; --max-side sets the limit"] * notes


def test_versions_name_what_makes_the_film() -> None:
    assert {"talkreel", "python", "numpy", "av", "pillow"} <= versions().keys()
