"""Stage 11, second half: the Sync and Encoding lines of complaints.md, on files written and read again."""

from __future__ import annotations

import itertools
import os
import weakref
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import pytest

from pipeline.errors import FilmError, OutputError
from pipeline.stages.film import FULL, FilmFacts, write_film
from pipeline.stages.film_format import FilmFormat, frames_in, segment_ranges
from pipeline.stages.segments import Segment, encode_segment
from pipeline.stages.sound import read_sound
from pipeline.values import F32, Soundtrack
from tests.media import clicks, moving_pictures, noise, tone, write_wav
from tests.small_disk import small_disk

WIDTH, HEIGHT = 64, 48
NOTE = {"SYNTHETIC": "made by talkreel from a portrait and a voice", "title": "A film"}


def form_at(fps: Fraction, segment_frames: int = 25) -> FilmFormat:
    return FilmFormat(WIDTH, HEIGHT, fps, segment_frames)


def make_segments(frames: int, form: FilmFormat) -> list[Segment]:
    pictures = list(moving_pictures(frames, form.width, form.height))
    return [
        encode_segment(pictures[part.start : part.stop], form) for part in segment_ranges(frames, form.segment_frames)
    ]


def make_film(path: Path, samples: F32, rate: int, fps: Fraction = Fraction(25)) -> tuple[FilmFacts, float]:
    """A film of moving pictures to these samples; its facts and the sound's duration."""
    speech, track = read_sound(write_wav(path.with_name("voice"), samples, rate))
    form = form_at(fps)
    segments = make_segments(frames_in(speech.duration, fps), form)
    return write_film(path, segments, track, form, NOTE), speech.duration


def heard(path: Path) -> F32:
    """[channels, n] of the film's sound at 48 kHz."""
    with av.open(str(path)) as container:
        return np.concatenate([frame.to_ndarray() for frame in container.decode(audio=0)], axis=1)


@pytest.fixture(scope="module")
def track(tmp_path_factory: pytest.TempPathFactory) -> Soundtrack:
    """2.5 s, mono."""
    path = write_wav(tmp_path_factory.mktemp("sound") / "voice", tone(2.5, 16000), 16000)
    return read_sound(path)[1]


def test_what_players_need(tmp_path: Path) -> None:
    path = tmp_path / "film.webm"
    facts, _ = make_film(path, np.stack([tone(2.5, 44100), tone(2.5, 44100, 330)]), 44100)
    with av.open(str(path)) as container:
        assert container.format.name == "matroska,webm"
        assert b"webm" in path.read_bytes()[:64]
        video, audio = container.streams.video[0], container.streams.audio[0]
        context = video.codec_context
        assert (context.name, context.pix_fmt) == ("vp9", "yuv420p")
        assert (context.width, context.height) == (WIDTH, HEIGHT)
        assert (context.color_range, context.colorspace) == (1, 1)
        assert (context.color_primaries, context.color_trc) == (1, 1)
        assert (audio.codec_context.name, audio.codec_context.sample_rate) == ("opus", 48000)
        assert audio.codec_context.channels == 2
        assert container.duration == 63 * 40_000  # microseconds: ceil(2.5 s * 25) frames
        assert container.metadata["SYNTHETIC"] == NOTE["SYNTHETIC"]
        assert container.metadata["title"] == "A film"
        assert video.average_rate == 25
    assert facts.frames == facts.video_packets == 63
    assert facts.picture_duration == 2.52
    assert facts.sound_duration == pytest.approx(2.5, abs=1e-4)
    assert facts.audio_offset == 0
    assert facts.size == path.stat().st_size


def test_the_container_itself_names_the_colours(track: Soundtrack, tmp_path: Path) -> None:
    """Matroska's Colour element: matrix, range, transfer and primaries, as Chromium reads them."""
    form = form_at(Fraction(25))
    path = tmp_path / "film.webm"
    write_film(path, make_segments(63, form), track, form, {})
    data = path.read_bytes()
    for element in (b"\x55\xb1\x81\x01", b"\x55\xb9\x81\x01", b"\x55\xba\x81\x01", b"\x55\xbb\x81\x01"):
        assert element in data


def test_the_index_lies_before_the_pictures_and_names_every_segment(track: Soundtrack, tmp_path: Path) -> None:
    form = form_at(Fraction(25))
    path = tmp_path / "film.webm"
    write_film(path, make_segments(63, form), track, form, {})
    data = path.read_bytes()
    assert 0 < data.find(b"\x1c\x53\xbb\x6b") < data.find(b"\x1f\x43\xb6\x75")  # Cues, Cluster
    with av.open(str(path)) as container:
        assert [entry.timestamp for entry in container.streams.video[0].index_entries] == [0, 1000, 2000]


def test_seeking_lands_on_the_segment(tmp_path: Path) -> None:
    path = tmp_path / "film.webm"
    make_film(path, tone(6, 16000), 16000)
    with av.open(str(path)) as container:
        container.seek(3_500_000)
        frames = list(container.decode(video=0))
        assert frames[0].pts == 3000
        assert frames[0].key_frame
        assert len(frames) == 75


@pytest.mark.parametrize("fps", [Fraction(25), Fraction(30000, 1001), Fraction(24000, 1001), Fraction(50)])
def test_every_frame_is_where_its_number_says(fps: Fraction, track: Soundtrack, tmp_path: Path) -> None:
    """Ten minutes, the same segment again and again: no drift, at rates that are no whole milliseconds too."""
    form = form_at(fps, 30)
    segment = make_segments(30, form)[0]
    count = int(600 * fps / 30)
    path = tmp_path / "film.webm"
    facts = write_film(path, (segment for _ in range(count)), track, form, {})
    with av.open(str(path)) as container:
        video = container.streams.video[0]
        assert video.average_rate == fps
        times = [packet.pts for packet in container.demux(video) if packet.pts is not None]
        duration = container.duration
    assert len(times) == facts.frames == 30 * count
    exact = [Fraction(index * 1000) / fps for index in range(len(times))]
    assert max(abs(time - right) for time, right in zip(times, exact, strict=True)) <= Fraction(1, 2)
    # Milliseconds: a frame's length is rounded once more at the very end.
    assert abs(Fraction(duration, 1_000_000) - len(times) / fps) < Fraction(2, 1000)


@pytest.mark.parametrize("seconds", [0.2, 1.0, 1.999, 2.0, 2.01])
@pytest.mark.parametrize("fps", [Fraction(25), Fraction(30000, 1001)])
def test_picture_and_sound_end_within_a_frame(seconds: float, fps: Fraction, tmp_path: Path) -> None:
    path = tmp_path / "film.webm"
    facts, duration = make_film(path, tone(seconds, 48000), 48000, fps)
    assert 0 <= facts.picture_duration - facts.sound_duration < 1 / fps
    assert heard(path).shape[1] == pytest.approx(duration * 48000, abs=1)
    with av.open(str(path)) as container:
        assert len(list(container.decode(video=0))) == facts.frames
        # Matroska's duration counts the Opus pre-skip of 6.5 ms as part of the sound.
        assert -1000 <= container.duration - facts.picture_duration * 1e6 <= 8000


@pytest.mark.parametrize("rate", [8000, 44100, 96000])
def test_the_sound_is_where_it_was(rate: int, tmp_path: Path) -> None:
    path = tmp_path / "film.webm"
    samples = clicks(3, [0.5, 2.95], rate)
    make_film(path, samples, rate)
    speech, _ = read_sound(tmp_path / "voice.wav")
    film = heard(path)[0]
    for start, end in ((0.0, 1.5), (1.5, 3.0)):
        played = film[int(start * 48000) : int(end * 48000)].argmax() / 48000
        known = speech.samples[int(start * 16000) : int(end * 16000)].argmax() / 16000
        assert played == pytest.approx(known, abs=0.001)
    assert film.argmax() / 48000 in (pytest.approx(0.501, abs=0.002), pytest.approx(2.951, abs=0.002))


def test_the_film_carries_the_original_sound(tmp_path: Path) -> None:
    path = tmp_path / "film.webm"
    make_film(path, np.concatenate([noise(1, 48000), np.zeros((1, 48000), np.float32)]), 48000)
    left, right = heard(path)
    assert np.abs(right).max() < 0.01
    spectrum = np.abs(np.fft.rfft(left)) ** 2
    frequencies = np.fft.rfftfreq(len(left), 1 / 48000)
    above = spectrum[(frequencies > 8500) & (frequencies < 18000)].mean()
    assert above > 0.4 * spectrum[(frequencies > 500) & (frequencies < 7500)].mean()


def test_the_packets_are_those_of_the_segments(track: Soundtrack, tmp_path: Path) -> None:
    form = form_at(Fraction(25))
    segments = make_segments(63, form)
    path = tmp_path / "film.webm"
    write_film(path, segments, track, form, {})
    with av.open(str(path)) as container:
        pictures = b"".join(bytes(packet) for packet in container.demux(video=0) if packet.size)
    with av.open(str(path)) as container:
        sound = b"".join(bytes(packet) for packet in container.demux(audio=0) if packet.size)
    assert pictures == b"".join(segment.data.tobytes() for segment in segments)
    assert sound == track.data.tobytes()


def test_packets_lie_in_the_order_of_time(track: Soundtrack, tmp_path: Path) -> None:
    form = form_at(Fraction(25))
    path = tmp_path / "film.webm"
    write_film(path, make_segments(63, form), track, form, {})
    with av.open(str(path)) as container:
        times = [float(packet.pts * packet.time_base) for packet in container.demux() if packet.size]
    assert all(later > earlier - 0.001 for earlier, later in itertools.pairwise(times))


def test_written_twice_the_same(track: Soundtrack, tmp_path: Path) -> None:
    form = form_at(Fraction(25))
    for name in ("one.webm", "two.webm"):
        write_film(tmp_path / name, make_segments(63, form), track, form, NOTE)
    assert (tmp_path / "one.webm").read_bytes() == (tmp_path / "two.webm").read_bytes()


def test_segments_are_written_and_let_go(track: Soundtrack, tmp_path: Path) -> None:
    """Neither the segments nor what they were written to pile up in memory."""
    form = FilmFormat(WIDTH, HEIGHT, Fraction(25), 250)
    pattern = make_segments(250, form)[0]
    taken: list[weakref.ref[Segment]] = []
    written: list[int] = []

    def stream() -> Iterator[Segment]:
        for index in range(100):
            assert sum(reference() is not None for reference in taken) <= 1
            (part,) = tmp_path.glob(".film.webm.*.part")
            written.append(part.stat().st_size)
            assert written[-1] >= (index - 2) * len(pattern.data) - 400_000  # what buffers hold
            segment = replace(pattern)
            taken.append(weakref.ref(segment))
            yield segment
            del segment

    facts = write_film(tmp_path / "film.webm", stream(), track, form, {})
    assert facts.frames == 25000
    assert written[-1] > 60 * len(pattern.data)


@pytest.mark.parametrize("interruption", [KeyboardInterrupt, RuntimeError, FilmError])
def test_nothing_is_left_of_a_film_that_was_not_finished(
    interruption: type[BaseException], track: Soundtrack, tmp_path: Path
) -> None:
    path = tmp_path / "film.webm"
    path.write_bytes(b"the film before")
    form = form_at(Fraction(25))

    def stream() -> Iterator[Segment]:
        yield make_segments(25, form)[0]
        assert len(list(tmp_path.iterdir())) == 2
        raise interruption("stop")

    with pytest.raises(interruption, match="stop"):
        write_film(path, stream(), track, form, {})
    assert list(tmp_path.iterdir()) == [path]
    assert path.read_bytes() == b"the film before"


def test_a_film_of_before_is_replaced(track: Soundtrack, tmp_path: Path) -> None:
    path = tmp_path / "film.webm"
    path.write_bytes(b"the film before")
    form = form_at(Fraction(25))
    facts = write_film(path, make_segments(63, form), track, form, {})
    assert list(tmp_path.iterdir()) == [path]
    assert path.stat().st_size == facts.size


@pytest.mark.parametrize("name", ["a:b.webm", "100% of ümlauts.webm", "http:x.webm"])
def test_names_that_look_like_addresses(name: str, track: Soundtrack, tmp_path: Path) -> None:
    form = form_at(Fraction(25))
    write_film(tmp_path / name, make_segments(63, form), track, form, {})
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_places_that_cannot_be_written(track: Soundtrack, tmp_path: Path) -> None:
    form = form_at(Fraction(25))
    with pytest.raises(OutputError, match="cannot be written: No such file or directory"):
        write_film(tmp_path / "absent" / "film.webm", [], track, form, {})
    (tmp_path / "folder.webm").mkdir()
    with pytest.raises(OutputError, match=r"folder\.webm cannot be written: it is a folder"):
        write_film(tmp_path / "folder.webm", [], track, form, {})
    assert [path.name for path in tmp_path.iterdir()] == ["folder.webm"]


def test_an_error_of_the_muxer_keeps_its_text(track: Soundtrack, tmp_path: Path) -> None:
    form = form_at(Fraction(25))
    segment = make_segments(25, form)[0]
    backwards = replace(segment, pts=segment.pts[::-1].copy())
    with pytest.raises(FilmError, match=r"writing the film failed: Invalid argument \(errno 22\)"):
        write_film(tmp_path / "film.webm", [backwards], track, form, {})
    assert list(tmp_path.iterdir()) == []


def test_parts_that_cannot_make_a_film(track: Soundtrack, tmp_path: Path) -> None:
    form = form_at(Fraction(25))
    path = tmp_path / "film.webm"
    with pytest.raises(FilmError, match="at least one segment"):
        write_film(path, [], track, form, {})
    with pytest.raises(FilmError, match="soundtrack is damaged"):
        write_film(path, make_segments(25, form), replace(track, data=track.data[:-1]), form, {})
    with pytest.raises(FilmError, match="another Opus encoder"):
        write_film(path, make_segments(25, form), replace(track, channels=2), form, {})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("room", [0, 100, 20_000, 50_000])
def test_a_full_disk(room: int, track: Soundtrack, tmp_path: Path) -> None:
    """Wherever it becomes full: the film that was there stays, and nothing of the new one."""
    form = form_at(Fraction(25))
    segments = make_segments(63, form)
    (tmp_path / "film.webm").write_bytes(b"older")
    with (
        small_disk(room),
        pytest.raises(OutputError, match=r"film\.webm cannot be written: File too large\. Make"),
    ):
        write_film(tmp_path / "film.webm", segments, track, form, NOTE)
    assert [path.name for path in tmp_path.iterdir()] == ["film.webm"]
    assert (tmp_path / "film.webm").read_bytes() == b"older"


@pytest.mark.parametrize("number", FULL)
def test_errors_that_mean_a_full_disk(
    number: int, track: Soundtrack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise av.error.FFmpegError(number, os.strerror(number))

    monkeypatch.setattr("pipeline.stages.film.av.open", full)
    form = form_at(Fraction(25))
    with pytest.raises(OutputError, match=os.strerror(number)):
        write_film(tmp_path / "film.webm", make_segments(1, form), track, form, NOTE)
    assert list(tmp_path.iterdir()) == []
