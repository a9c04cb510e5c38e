"""The film plays in a browser: seeking, colours, both streams, to the end."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from pipeline.cli.main import main
from pipeline.stages.film import write_film
from pipeline.stages.film_format import FilmFormat, frames_in, segment_ranges
from pipeline.stages.segments import encode_segment
from pipeline.stages.sound import read_sound
from tests.browser.chromium import play_in_chromium
from tests.media import moving_pictures, tone, write_wav

pytestmark = pytest.mark.browser

SKIN = (224, 172, 105)


@pytest.mark.parametrize("fps", [Fraction(25), Fraction(30000, 1001)])
def test_a_film_plays_to_its_end_and_seeks(fps: Fraction, tmp_path: Path) -> None:
    speech, track = read_sound(write_wav(tmp_path / "voice", np.stack([tone(6, 48000)] * 2), 48000))
    form = FilmFormat.of(322, 242, fps)
    pictures = list(moving_pictures(frames_in(speech.duration, fps), form.width, form.height))
    # The third second shows one colour at the centre: what a browser makes of matrix and range.
    for picture in pictures[int(2 * fps) : int(4 * fps)]:
        picture[80:160, 120:200] = SKIN
    segments = [
        encode_segment(pictures[part.start : part.stop], form)
        for part in segment_ranges(len(pictures), form.segment_frames)
    ]
    path = tmp_path / "film.webm"
    facts = write_film(path, segments, track, form, {"SYNTHETIC": "test"})

    playback = play_in_chromium(path)

    assert playback.error is None
    assert playback.events == ("loadeddata", "seeked", "seeked", "ended")
    assert (playback.width, playback.height) == (322, 242)
    assert playback.duration == pytest.approx(facts.picture_duration, abs=0.01)
    assert playback.seek_time == pytest.approx(facts.picture_duration / 2, abs=0.02)
    assert np.abs(np.subtract(playback.seek_colour, SKIN)).max() <= 4
    assert playback.end_time == pytest.approx(playback.duration, abs=0.05)
    assert playback.audio_bytes > 0
    assert playback.ranges > 0


def test_the_demos_film_plays(tmp_path: Path) -> None:
    """What `make demo` makes, by the same command."""
    samples = Path(__file__).parents[2] / "samples"
    path = tmp_path / "demo.webm"
    arguments = ["render", str(samples / "portrait.png"), str(samples / "voice.wav"), "-o", str(path), "--quiet"]
    assert main(arguments) == 0

    playback = play_in_chromium(path)

    assert playback.error is None
    assert playback.events == ("loadeddata", "seeked", "seeked", "ended")
    assert (playback.width, playback.height) == (512, 512)
    assert playback.duration == pytest.approx(8.48, abs=0.05)
    assert playback.seek_time == pytest.approx(4.24, abs=0.05)
    assert playback.end_time == pytest.approx(playback.duration, abs=0.05)
    assert playback.audio_bytes > 0


def test_a_file_that_is_no_film_is_told_apart(tmp_path: Path) -> None:
    path = tmp_path / "film.webm"
    path.write_bytes(b"no film" * 1000)
    playback = play_in_chromium(path)
    assert playback.error is not None
    assert "media error 4" in playback.error
    assert "ended" not in playback.events
