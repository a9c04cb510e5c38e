"""Frame counts, frame rates and settings: pure functions."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.errors import FilmError, SettingsError
from pipeline.stages.film_format import (
    FilmFormat,
    encoder_options,
    exact_fps,
    frames_in,
    segment_ranges,
)

RATES = [Fraction(25), Fraction(24), Fraction(30), Fraction(30000, 1001), Fraction(24000, 1001), Fraction(50)]


@given(st.floats(0.2, 1800), st.sampled_from(RATES))
def test_the_picture_covers_the_sound_by_less_than_a_frame(duration: float, fps: Fraction) -> None:
    excess = frames_in(duration, fps) / fps - Fraction(duration)
    assert -1e-6 <= excess * fps < 1


@pytest.mark.parametrize("fps", RATES)
@pytest.mark.parametrize("frames", [5, 250, 44999, 53947])
def test_a_sound_of_whole_frames_gets_no_frame_more(frames: int, fps: Fraction) -> None:
    assert frames_in(float(frames / fps), fps) == frames


def test_one_sample_more_is_one_frame_more() -> None:
    assert frames_in(10 + 1 / 48000, Fraction(25)) == 251


@pytest.mark.parametrize(
    ("value", "fps"),
    [
        (25, Fraction(25)),
        (25.0, Fraction(25)),
        ("30000/1001", Fraction(30000, 1001)),
        (29.97, Fraction(30000, 1001)),
        ("29.97", Fraction(30000, 1001)),
        (23.976, Fraction(24000, 1001)),
        (23.98, Fraction(24000, 1001)),
        (59.94, Fraction(60000, 1001)),
        (12.5, Fraction(25, 2)),
        (Fraction(24), Fraction(24)),
    ],
)
def test_exact_fps(value: float | str | Fraction, fps: Fraction) -> None:
    assert exact_fps(value) == fps


@pytest.mark.parametrize("value", [0, -25, 1000, "fast", "1/0", float("nan"), float("inf")])
def test_rates_that_cannot_be(value: float | str) -> None:
    with pytest.raises(SettingsError, match="fps"):
        exact_fps(value)


@given(st.integers(1, 1000), st.integers(1, 60))
def test_segments_cover_every_frame_once(frames: int, segment_frames: int) -> None:
    ranges = segment_ranges(frames, segment_frames)
    assert [frame for part in ranges for frame in part] == list(range(frames))
    assert all(len(part) == segment_frames for part in ranges[:-1])


@pytest.mark.parametrize("size", [(511, 512), (512, 333), (0, 2), (2, -2), (8000, 2)])
def test_sizes_that_cannot_be(size: tuple[int, int]) -> None:
    with pytest.raises(FilmError, match="even number"):
        FilmFormat.of(*size, Fraction(25))


def test_rates_and_segments_that_cannot_be() -> None:
    with pytest.raises(FilmError, match="frame rate"):
        FilmFormat.of(64, 64, Fraction(0))
    with pytest.raises(FilmError, match="segment of 0 frames"):
        FilmFormat(64, 64, Fraction(25), 0)


def test_segments_last_four_seconds() -> None:
    assert FilmFormat.of(64, 64, Fraction(25)).segment_frames == 100
    assert FilmFormat.of(64, 64, Fraction(30000, 1001)).segment_frames == 120


def test_the_encoder_uses_one_thread_and_keeps_its_quality_constant() -> None:
    options = encoder_options()
    assert options["threads"] == "1"
    assert options["row-mt"] == "0"
    assert options["b"] == "0"
    assert all(isinstance(value, str) for value in options.values())
