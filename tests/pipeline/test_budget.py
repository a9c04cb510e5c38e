"""The planner: which way is taken, and what is said of it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline import OutOfTimeError, Settings
from pipeline.budget import RESERVE, Forecast, decide, ways
from pipeline.packs.manifest import Preset
from pipeline.packs.specs import KeyFrameSpec

PRESETS = {"small": Preset(128, "s"), "large": Preset(512, "l"), "middle": Preset(256, "m"), "twin": Preset(512, "l")}
SPEC = KeyFrameSpec(fps=25, extra_percentile=62, extra_gap=0.16, greatest_miss=0.1, chunk=50, least_fps=5)
SECONDS = {"large": 1.0, "twin": 1.0, "middle": 0.3, "small": 0.1}

ASKED = st.builds(
    Settings,
    preset=st.sampled_from(sorted(PRESETS)),
    fps=st.sampled_from([1, 5, 24, 25, "30000/1001", 60]),
    keyframe_fps=st.none() | st.floats(0.1, 60),
)
check = settings(derandomize=True, deadline=None, max_examples=40)


def rate(way: Settings) -> float:
    return min(way.keyframe_fps or SPEC.fps, float(way.fps))


def ten_seconds(way: Settings, rivals: int = 0) -> Forecast:
    """A film of 10 s: a key frame takes what its preset says, and nothing else takes any time."""
    keys = round(10 * rate(way))
    least = keys * SECONDS[way.preset]
    return Forecast(way, keys, SECONDS[way.preset], 1, least * (1 + rivals), least)


def within(seconds: float, asked: Settings, forecast: Callable[[Settings], Forecast] = ten_seconds):  # type: ignore[no-untyped-def]
    return decide(ways(asked, PRESETS, SPEC), forecast, lambda: seconds, SPEC)


@check
@given(asked=ASKED)
def test_ways_go_down(asked: Settings) -> None:
    found = list(ways(asked, PRESETS, SPEC))
    assert found[0] == asked
    steps = [(PRESETS[way.preset].size, rate(way)) for way in found]
    assert steps == sorted(set(steps), reverse=True)
    lowest = min(max(SPEC.least_fps, float(asked.fps) / 25, 0.1), rate(asked))
    assert all(rate(way) >= lowest for way in found)
    assert rate(found[-1]) == pytest.approx(lowest)
    assert PRESETS[found[-1].preset].size == 128


@check
@given(asked=ASKED, seconds=st.floats(0.01, 1000))
def test_the_first_way_that_fits_is_taken(asked: Settings, seconds: float) -> None:
    every = [ten_seconds(way) for way in ways(asked, PRESETS, SPEC)]
    fitting = [forecast for forecast in every if forecast.seconds * (1 + RESERVE) <= seconds]
    quickest = min(every, key=lambda forecast: forecast.seconds)
    if fitting:
        assert within(seconds, asked).chosen == fitting[0]
    elif quickest.least <= seconds:
        assert within(seconds, asked).chosen == quickest
    else:
        with pytest.raises(OutOfTimeError, match=rf"{quickest.key_frames} key frames of .* are left"):
            within(seconds, asked)


def test_what_there_is_time_for_stays_as_asked() -> None:
    decision = within(1000, Settings(preset="large"))
    assert decision.settings == Settings(preset="large")
    assert decision.lowered == {}
    assert decision.note() == ""
    assert len(decision.tried) == 1


def test_key_frames_go_before_the_preset() -> None:
    decision = within(100, Settings(preset="large"))
    assert decision.settings == Settings(preset="large", keyframe_fps=25 / 3)
    assert decision.note() == (
        "lowered to be done in time: key frames from 25 to 8.33 a second; as asked it would have taken about "
        "250.0 s (250 key frames of 1 s), 100.0 s were left"
    )
    assert decision.to_json()["lowered"] == {"keyframe_fps": [25, 8.3333]}


def test_a_smaller_preset_has_its_key_frames_back() -> None:
    decision = within(50, Settings(preset="large"))
    assert decision.lowered == {"keyframe_fps": [25, 12.5], "preset": ["large", "middle"]}
    assert "preset from large to middle" in decision.note()


def test_where_fewer_key_frames_save_nothing_the_preset_goes() -> None:
    """Frames in between may cost more than the generator's."""

    def dear(way: Settings) -> Forecast:
        return Forecast(way, 1, 1, 1, seconds := PRESETS[way.preset].size * (1 + 10 / rate(way)), seconds)

    decision = within(500, Settings(preset="large"), dear)
    assert decision.lowered == {"preset": ["large", "middle"]}


def test_other_jobs_make_it_lower_and_never_give_up() -> None:
    """They may be done sooner than thought."""
    busy = within(300, Settings(preset="large"), lambda way: ten_seconds(way, rivals=1))
    assert busy.lowered == {"keyframe_fps": [25, 12.5]}
    crowded = within(6, Settings(preset="large"), lambda way: ten_seconds(way, rivals=100))
    assert (crowded.settings.preset, crowded.settings.keyframe_fps) == ("small", 5)


def test_it_is_measured_only_as_far_as_needed() -> None:
    seen: list[str] = []

    def measuring(way: Settings) -> Forecast:
        seen.append(way.preset)
        return ten_seconds(way)

    within(60, Settings(preset="large"), measuring)
    assert set(seen) == {"large"}


def test_time_that_measuring_takes_counts() -> None:
    left = [160.0]

    def slow(way: Settings) -> Forecast:
        left[0] -= 60
        return ten_seconds(way)

    decision = decide(ways(Settings(preset="middle"), PRESETS, SPEC), slow, lambda: left[0], SPEC)
    assert decision.left == 100.0
    assert decision.lowered == {}
    with pytest.raises(OutOfTimeError, match=r"and 0\.0 s are left"):
        decide(ways(Settings(preset="large"), PRESETS, SPEC), slow, lambda: left[0], SPEC)
