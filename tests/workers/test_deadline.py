"""Deadlines on a real fleet: the rate of key frames goes down, then the preset, then the job ends.

Key frames take a second and more, measured by the worker where nobody has; where a test says what the fleet's
machines have measured, it is far from what they would: so what is decided does not depend on this machine's load.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.workers.fleet import WAIT, TestFleet, cut_voice, running_fleet, wait_until
from workers.client import Job
from workers.errors import DeadlineError
from workers.paces import Figure, by_machine

FILM: dict[str, Any] = {"preset": "quality", "frame": "crop", "fps": 10, "seed": 5}
"""Ten frames."""

SLOW = 1.0
"""Seconds that a key frame takes at least."""


@pytest.fixture(scope="module")
def voice(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return cut_voice(tmp_path_factory.mktemp("voice") / "voice.wav", 1)


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestFleet]:
    environment = {"TALKREEL_TEST_SLOW": str(SLOW)}
    with running_fleet(tmp_path_factory.mktemp("fleet"), "one", odd=True, environment=environment) as made:
        yield made


def figures(job: Job) -> list[Figure]:
    order = job.fleet.jobs.order(job.id)
    return job.fleet.paces.figures(order.pack_identity, order.code)


def say(job: Job, quality: float, preview: float) -> None:
    """Have the fleet's figures be these, seconds a key frame."""
    order, paces = job.fleet.jobs.order(job.id), job.fleet.paces
    paces.redis.delete(paces._figures(order.pack_identity, order.code))
    for work, seconds, preset in (
        ("key frame", quality, "quality"), ("key frame", preview, "preview"), ("between", 1e-6, ""), ("film", 1e-6, ""),
    ):  # fmt: skip
        paces.record(order.pack_identity, order.code, work, seconds, preset=preset)


def held_job(fleet: TestFleet, voice: Path, **how: Any) -> Job:
    """A job whose budget is decided once its hold is let go."""
    fleet.hold("hold-budget")
    job = fleet.submit(voice, **{**FILM, **how})
    fleet.wait_held("hold-budget")
    return job


def test_what_nobody_has_measured_is_measured_first(fleet: TestFleet, voice: Path) -> None:
    """There is time enough: it is made as asked."""
    job = fleet.submit(voice, **{**FILM, "preset": "preview", "deadline": 1000})
    report = job.wait(timeout=WAIT)
    assert report["budget"]["lowered"] == {}
    assert report["notes"] == []
    found = figures(job)
    assert by_machine(found, "key frame", "preview").keys() == by_machine(found, "film").keys()
    assert min(by_machine(found, "key frame", "preview").values()) >= SLOW
    assert by_machine(found, "key frame", "quality") == {}  # there was no need
    assert "budget" in {event.stage for event in job.events(timeout=WAIT)}
    plain = fleet.submit(voice, **{**FILM, "preset": "preview"})
    assert plain.wait(timeout=WAIT)["budget"] is None
    assert plain.result() == job.result()


def test_fewer_key_frames_first(fleet: TestFleet, voice: Path) -> None:
    job = held_job(fleet, voice, deadline=1000)
    say(job, quality=90, preview=1)
    fleet.let_go("hold-budget")
    report = job.wait(timeout=WAIT)
    assert report["budget"]["lowered"].keys() == {"keyframe_fps"}
    assert report["frames"]["key_frames"] < 10
    (note,) = (event.data["note"] for event in job.events(timeout=WAIT) if event.stage == "budget")
    assert note.startswith("lowered to be done in time: key frames from 10 to ")
    assert "10 key frames of 90 s" in note
    assert note in report["notes"]
    assert report["settings"]["keyframe_fps"] == report["budget"]["lowered"]["keyframe_fps"][1]
    asked = fleet.submit(voice, **{**FILM, "keyframe_fps": report["settings"]["keyframe_fps"]})
    asked.wait(timeout=WAIT)
    assert asked.result() == job.result()


def test_then_a_smaller_preset(fleet: TestFleet, voice: Path) -> None:
    job = held_job(fleet, voice, deadline=1000)
    say(job, quality=2000, preview=10)
    fleet.let_go("hold-budget")
    wait_until(lambda: job.status()["budget"] is not None, WAIT, fleet.standing)
    say(job, quality=0.1, preview=0.1)  # what is decided stays
    report = job.wait(timeout=WAIT)
    assert report["budget"]["lowered"] == {"preset": ["quality", "preview"]}
    assert (report["film"]["width"], report["settings"]["preset"]) == (256, "preview")


def test_what_cannot_be_done_ends_with_the_figures(fleet: TestFleet, voice: Path) -> None:
    job = held_job(fleet, voice, deadline=1000)
    say(job, quality=2000, preview=900)
    fleet.let_go("hold-budget")
    with pytest.raises(DeadlineError, match=r"of 1000 s: even with preset preview .* key frames of 900 s.*left"):
        job.wait(timeout=WAIT)
    assert "plan" not in job.fleet.jobs.view(job.id).steps
    wait_until(lambda: not job.status()["bytes"], WAIT, lambda: str(job.status()))


def test_other_jobs_count(fleet: TestFleet, voice: Path) -> None:
    """Those that are at least as urgent take their share of the machines."""
    job = held_job(fleet, voice, deadline=1000)
    others = [fleet.submit(voice, seed=seed, priority=priority) for seed, priority in ((6, "normal"), (7, "low"))]
    say(job, quality=60, preview=1)
    fleet.let_go("hold-budget")
    wait_until(lambda: job.status()["budget"] is not None, WAIT, fleet.standing)
    assert job.status()["budget"]["forecasts"][0]["seconds"] == pytest.approx(1200, abs=1)
    for other in (job, *others):
        other.cancel()
