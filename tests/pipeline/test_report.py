"""The report: JSON-able, with counts and lists of what was repaired."""

from __future__ import annotations

import json

from pipeline.report import Report, versions
from pipeline.values import Repair


def test_repairs_are_listed_by_kind_and_frame() -> None:
    report = Report(repairs=[Repair(3, "rendered again", ("flat",)), Repair(9, "carried on", ("a", "b"))])
    frames = json.loads(json.dumps(report.to_json()))["frames"]
    assert frames["rendered_again"] == [{"frame": 3, "reasons": ["flat"]}]
    assert frames["carried_on"] == [{"frame": 9, "reasons": ["a", "b"]}]


def test_time_in_a_stage_adds_up() -> None:
    report = Report()
    for _ in range(2):
        with report.timing("generator", "CPUExecutionProvider"):
            pass
    stage = report.to_json()["stages"]["generator"]
    assert stage["provider"] == "CPUExecutionProvider"
    assert stage["seconds"] > 0


def test_versions_name_what_makes_the_film() -> None:
    assert {"talkreel", "python", "numpy", "av", "pillow"} <= versions().keys()
