"""Stage 1: the Audio lines of complaints.md, each with a real file."""

from __future__ import annotations

import io
import os
import re
from pathlib import Path

import av
import numpy as np
import pytest

from pipeline.errors import SoundError
from pipeline.stages import decoding, sound
from pipeline.stages.sound import SoundFacts, probe_sound, read_sound
from pipeline.values import F32, Soundtrack
from tests.media import (
    SOUND_FORMATS,
    SoundFormat,
    add_cover_art,
    clicks,
    noise,
    tone,
    write_sound,
    write_video,
    write_wav,
)

CLICKS = [1.0, 2.45]  # the second one in the last 50 ms
SECONDS = 2.5

VIDEOS = {
    "mp4 h264 aac": (SoundFormat(".mp4", "aac", 48000), "libx264"),
    "mov mpeg4 pcm": (SoundFormat(".mov", "pcm_s16le", 44100), "mpeg4"),
    "webm vp9 opus": (SoundFormat(".webm", "libopus", 48000), "libvpx-vp9"),
    "mkv mpeg4 flac": (SoundFormat(".mkv", "flac", 48000), "mpeg4"),
    "avi mpeg4 mp3": (SoundFormat(".avi", "libmp3lame", 44100), "mpeg4"),
}


def opus_samples(track: Soundtrack) -> F32:
    """[channels, n] as a player hears it: decoded, without pre-skip and filling."""
    decoder = av.CodecContext.create("libopus", "r")
    decoder.extradata = track.header
    decoder.sample_rate = 48000
    decoder.layout = {1: "mono", 2: "stereo"}[track.channels]
    frames = []
    ends = np.cumsum(track.sizes)
    for end, size in zip(ends, track.sizes, strict=True):
        frames += decoder.decode(av.Packet(track.data[end - size : end].tobytes()))
    packed = [frame.to_ndarray().reshape(-1, track.channels) for frame in frames]
    samples = np.concatenate(packed).T.astype(np.float32) / 32768
    assert samples.shape[1] == 960 * len(track.sizes) - 312  # the decoder drops the pre-skip itself
    return samples[:, : int(track.pts[-1] + track.durations[-1])]


def click_times(samples: F32, rate: int) -> list[float]:
    """Seconds of the loudest sample before and after 1.7 s."""
    parts = (samples[: int(1.7 * rate)], samples[int(1.7 * rate) :])
    return [float(np.abs(part).argmax() / rate + offset) for part, offset in zip(parts, (0, 1.7), strict=True)]


def check_clicks(path: Path, delay: float = 0.0) -> None:
    speech, track = read_sound(path)
    assert speech.samples.dtype == np.float32
    assert speech.samples.ndim == 1
    assert speech.duration == pytest.approx(SECONDS, abs=0.04)  # codecs fill their last packet
    assert len(speech.samples) == pytest.approx(speech.duration * 16000, abs=2)
    heard = click_times(speech.samples, speech.sample_rate)
    played = click_times(opus_samples(track).mean(axis=0), 48000)
    assert heard == pytest.approx([time + 0.001 + delay for time in CLICKS], abs=0.003)
    assert played == pytest.approx(heard, abs=0.0005)


@pytest.mark.parametrize("name", SOUND_FORMATS)
def test_formats_keep_length_and_alignment_to_the_last_moment(name: str, tmp_path: Path) -> None:
    form = SOUND_FORMATS[name]
    path = write_sound(tmp_path / "voice", clicks(SECONDS, CLICKS, form.rate, form.channels), form)
    check_clicks(path)
    speech, track = read_sound(path)
    assert track.channels == min(form.channels, 2)
    # The end of the film's sound is the end of the recording.
    assert (track.pts[-1] + track.durations[-1]) / 48000 == pytest.approx(speech.duration, abs=1e-4)
    if form.lossless:
        assert speech.duration == SECONDS


@pytest.mark.parametrize("name", VIDEOS)
def test_sound_track_of_a_video(name: str, tmp_path: Path) -> None:
    form, codec = VIDEOS[name]
    path = write_video(tmp_path / "clip", clicks(SECONDS, CLICKS, form.rate, 2), form, codec, seconds=4)
    # AVI has no place for the delay of an MP3 encoder (LAME: 1105 samples), so it is part of the sound.
    check_clicks(path, delay=1105 / 44100 if form.suffix == ".avi" else 0.0)


def test_tags_in_any_encoding_are_no_matter(tmp_path: Path) -> None:
    """Old files name their title in Latin-1; to some versions of PyAV that is an error."""
    path = write_wav(tmp_path / "voice.wav", tone(1, 16000), 16000)
    title = b"INFOINAM\x04\x00\x00\x00caf\xe9"
    data = path.read_bytes() + b"LIST" + len(title).to_bytes(4, "little") + title
    path.write_bytes(data[:4] + (len(data) - 8).to_bytes(4, "little") + data[8:])
    speech, _ = read_sound(path)
    assert speech.duration == 1


def test_mp3_with_cover_art(tmp_path: Path) -> None:
    form = SOUND_FORMATS["mp3 44.1 kHz"]
    path = add_cover_art(write_sound(tmp_path / "voice", clicks(SECONDS, CLICKS, form.rate, 2), form))
    with av.open(str(path)) as container:
        assert len(container.streams.video) == 1
    check_clicks(path)


def test_a_file_object_is_read_and_left_open(tmp_path: Path) -> None:
    path = write_wav(tmp_path / "voice", tone(1, 16000), 16000)
    file = io.BytesIO(path.read_bytes())
    speech, _ = read_sound(file)
    assert speech.duration == 1
    assert not file.closed


def test_the_copy_at_its_own_rate_is_the_recording_bit_for_bit(tmp_path: Path) -> None:
    samples = noise(1, 16000)
    speech, _ = read_sound(write_wav(tmp_path / "voice", samples, 16000))
    np.testing.assert_array_equal(speech.samples, samples[0])


def test_stereo_is_averaged_for_the_models_and_kept_for_the_film(tmp_path: Path) -> None:
    left = tone(1, 48000, 440)
    path = write_wav(tmp_path / "voice", np.stack([left, np.zeros_like(left)]), 48000)
    speech, track = read_sound(path)
    assert np.abs(speech.samples[800:-800]).max() == pytest.approx(0.15, abs=0.003)
    played = opus_samples(track)
    assert np.sqrt(np.mean(played[0] ** 2)) > 100 * np.sqrt(np.mean(played[1] ** 2))


def test_the_voice_of_a_5_1_recording_is_in_the_centre_and_heard(tmp_path: Path) -> None:
    samples = np.zeros((6, 48000), np.float32)
    samples[2] = tone(1, 48000, 440)
    path = write_sound(tmp_path / "voice", samples, SOUND_FORMATS["wav 5.1 48 kHz"])
    speech, track = read_sound(path)
    assert np.abs(speech.samples[800:-800]).max() == pytest.approx(0.3 * 0.7071, abs=0.005)
    played = opus_samples(track)[:, 4800:-4800]
    np.testing.assert_allclose(played[0], played[1], atol=0.01)


def test_the_film_keeps_what_the_16_khz_copy_cannot(tmp_path: Path) -> None:
    path = write_wav(tmp_path / "voice", noise(1, 48000), 48000)
    _, track = read_sound(path)
    spectrum = np.abs(np.fft.rfft(opus_samples(track)[0])) ** 2
    frequencies = np.fft.rfftfreq(len(opus_samples(track)[0]), 1 / 48000)
    above = spectrum[(frequencies > 8500) & (frequencies < 18000)].mean()
    below = spectrum[(frequencies > 500) & (frequencies < 7500)].mean()
    assert above > 0.5 * below


@pytest.mark.parametrize("level", [0.02, 0.3, 1.0, 1.5])
def test_loudness_is_left_alone(level: float, tmp_path: Path) -> None:
    path = write_wav(tmp_path / "voice", np.stack([tone(1, 44100, 300, level)] * 2), 44100)
    speech, _ = read_sound(path)
    assert np.abs(speech.samples[800:-800]).max() == pytest.approx(level, rel=0.01)


def test_music_is_a_sound_like_any_other(tmp_path: Path) -> None:
    chord = sum(tone(2, 44100, note, 0.2) for note in (220.0, 277.2, 329.6, 440.0))
    speech, track = read_sound(write_wav(tmp_path / "music", np.stack([chord, chord]), 44100))
    assert speech.duration == 2
    assert track.channels == 2


def test_a_constant_offset_and_clipping_are_passed_on(tmp_path: Path) -> None:
    samples = np.clip(tone(1, 16000, level=3.0) + 0.2, -1, 1)
    speech, _ = read_sound(write_wav(tmp_path / "voice", samples, 16000))
    np.testing.assert_array_equal(speech.samples, samples)


def test_broken_numbers_in_a_float_file(tmp_path: Path) -> None:
    samples = tone(1, 48000)
    samples[1000], samples[2000], samples[3000], samples[4000] = np.nan, np.inf, -np.inf, 1e30
    speech, track = read_sound(write_wav(tmp_path / "voice", samples, 48000))
    assert np.isfinite(speech.samples).all()
    assert np.abs(speech.samples).max() <= 2 * decoding.LOUDEST
    played = opus_samples(track)[0]
    assert np.isfinite(played).all()
    # Half a second later nothing is left of it.
    assert np.abs(played[28000:40000]).max() < 0.35


def test_rate_and_channels_that_change_midway(tmp_path: Path) -> None:
    parts = []
    for rate, channels in ((44100, 2), (48000, 1), (22050, 2)):
        form = SoundFormat(".mp3", "libmp3lame", rate, channels)
        path = write_sound(tmp_path / f"part{rate}", clicks(1.2, [0.6], rate, channels), form)
        parts.append(path.read_bytes())
    path = tmp_path / "joined.mp3"
    path.write_bytes(b"".join(parts))
    speech, track = read_sound(path)
    assert speech.duration == pytest.approx(3.6, abs=0.25)  # each join carries the encoder's own filling
    # What is shorter than the resampler's filter may get lost at a change: 1 ms.
    assert len(speech.samples) == pytest.approx(speech.duration * 16000, abs=16)
    played = opus_samples(track)
    assert played.shape == (2, pytest.approx(speech.duration * 48000, abs=16))
    for first in (0.0, 1.2, 2.4):
        heard, film = (
            np.abs(part[round(first * rate) : round((first + 1.2) * rate)]).argmax() / rate
            for part, rate in ((speech.samples, 16000), (played.mean(axis=0), 48000))
        )
        assert heard == pytest.approx(film, abs=0.002)


def test_a_late_start_and_gaps_are_closed(tmp_path: Path) -> None:
    path = tmp_path / "late.mkv"
    with av.open(str(path), "w") as container:
        stream = container.add_stream("pcm_s16le", rate=48000)
        stream.layout = "mono"
        for second in (5, 6, 9):
            frame = av.AudioFrame.from_ndarray(clicks(1, [0.5], 48000), format="fltp", layout="mono")
            frame.sample_rate, frame.pts = 48000, second * 48000
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    speech, track = read_sound(path)
    assert speech.duration == 3
    assert np.abs(speech.samples[32000:]).argmax() / 16000 == pytest.approx(0.501, abs=0.001)
    assert track.pts[0] == -312


def with_broken_packets(path: Path, which: slice) -> Path:
    """Five seconds of AAC in Matroska, these packets' content overwritten."""
    path = write_sound(path, noise(5, 48000, 2), SoundFormat(".mkv", "aac", 48000))
    with av.open(str(path)) as container:
        packets = [bytes(packet) for packet in container.demux(audio=0) if packet.size]
    data = path.read_bytes()
    for packet in packets[which]:
        assert data.count(packet) == 1
        data = data.replace(packet, b"\xff" * len(packet))
    path.write_bytes(data)
    return path


def test_a_few_broken_packets_are_skipped_and_said(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    speech, _ = read_sound(with_broken_packets(tmp_path / "voice", slice(100, 102)))
    assert speech.duration == pytest.approx(5, abs=0.1)
    assert "2 of 237 packets could not be decoded and were left out" in caplog.text


def test_many_broken_packets_are_an_error(tmp_path: Path) -> None:
    with pytest.raises(SoundError, match="is damaged: 60 of its 237 packets cannot be decoded"):
        read_sound(with_broken_packets(tmp_path / "voice", slice(100, 160)))


def test_a_half_missing_file_gives_what_there_is(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = write_sound(tmp_path / "voice", noise(4, 44100, 2), SOUND_FORMATS["mp3 44.1 kHz"])
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])
    assert read_sound(path)[0].duration == pytest.approx(2, abs=0.2)
    assert re.search(r"only 2\.0 s of the 4\.0 s that its header names", caplog.text)


def test_silence_first_is_fine(tmp_path: Path) -> None:
    samples = np.concatenate([np.zeros(48000, np.float32), tone(1, 16000)])
    speech, _ = read_sound(write_wav(tmp_path / "voice", samples, 16000))
    np.testing.assert_array_equal(speech.samples, samples)


@pytest.mark.parametrize(
    ("samples", "message"),
    [
        (np.zeros(32000, np.float32), "is silent: nothing in it is louder than -60 dBFS"),
        (tone(2, 16000, level=0.0005), "is silent"),
        (tone(0.05, 16000), r"lasts 0.050 s; at least 0.2 s"),
        (tone(0.199, 16000), r"lasts 0.199 s; at least 0.2 s"),
    ],
)
def test_sounds_that_say_nothing(samples: F32, message: str, tmp_path: Path) -> None:
    path = write_wav(tmp_path / "voice", samples, 16000)
    with pytest.raises(SoundError, match=message) as caught:
        read_sound(path)
    assert str(path) in str(caught.value)


def test_the_faintest_and_the_shortest_that_pass(tmp_path: Path) -> None:
    speech, track = read_sound(write_wav(tmp_path / "voice", tone(0.2, 16000, level=0.002), 16000))
    assert speech.duration == 0.2
    assert track.pts[-1] + track.durations[-1] == 9600


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b"This is a letter.\n" * 50, "cannot be read as sound or video"),
        (np.random.default_rng(0).bytes(5000), "cannot be read as sound or video|no audio stream|no sound"),
        (b"RIFF\x00\x00\x00\x00WAVE", "cannot be read as sound or video"),
    ],
)
def test_files_that_are_no_sound(content: bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / "voice.wav"
    path.write_bytes(content)
    for read in (read_sound, probe_sound):
        with pytest.raises(SoundError, match=message) as caught:
            read(path)
        assert str(path) in str(caught.value)


def test_a_path_without_a_file(tmp_path: Path) -> None:
    with pytest.raises(SoundError, match="cannot be opened: No such file"):
        read_sound(tmp_path / "absent.wav")
    with pytest.raises(SoundError, match="cannot be opened: Is a directory"):
        read_sound(tmp_path)


def test_a_pipe_is_an_error_that_says_what_to_do() -> None:
    end, other = os.pipe()
    os.close(other)
    with open(end, "rb") as pipe, pytest.raises(SoundError, match=r"is a pipe.*Save it as a file"):
        read_sound(pipe)


def test_a_video_without_sound(tmp_path: Path) -> None:
    path = tmp_path / "mute.mp4"
    with av.open(str(path), "w") as container:
        stream = container.add_stream("mpeg4", rate=10)
        stream.width, stream.height = 64, 48
        container.mux(stream.encode(av.VideoFrame.from_ndarray(np.zeros((48, 64, 3), np.uint8), format="rgb24")))
        container.mux(stream.encode(None))
    with pytest.raises(SoundError, match="has no audio stream"):
        read_sound(path)


@pytest.mark.parametrize("playlist", ["ffconcat version 1.0\nfile {}\n", "#EXTM3U\n#EXTINF:1,\n{}\n"])
def test_a_playlist_reaches_no_other_file(playlist: str, tmp_path: Path) -> None:
    write_wav(tmp_path / "secret", tone(1, 16000), 16000)
    path = tmp_path / "voice.m3u8"
    path.write_text(playlist.format("secret.wav"))
    with pytest.raises(SoundError):
        read_sound(path)


def test_too_long_stops_early(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit is 30 minutes; a shorter one shows that decoding ends where it is passed."""
    assert sound.LONGEST == 1800
    path = write_wav(tmp_path / "voice", tone(20, 16000), 16000)
    decoded: list[float] = []
    clean = decoding._cleaned

    def counted(frame: av.AudioFrame) -> av.AudioFrame:
        decoded.append(frame.samples / frame.sample_rate)
        return clean(frame)

    monkeypatch.setattr(decoding, "_cleaned", counted)
    with pytest.raises(SoundError, match=r"longer than 0\.1 minutes"):
        read_sound(path, longest=6)
    assert 6 < sum(decoded) < 7


def test_a_talk_as_long_as_the_limit_is_read_whole(tmp_path: Path) -> None:
    form = SoundFormat(".flac", "flac", 8000, 1)
    path = write_sound(tmp_path / "talk", tone(60, 8000)[None], form)
    speech, track = read_sound(path, longest=60)
    assert speech.duration == 60
    assert len(speech.samples) == 60 * 16000
    assert track.pts[-1] + track.durations[-1] == 60 * 48000


def test_read_twice_the_same(tmp_path: Path) -> None:
    path = write_wav(tmp_path / "voice", noise(2, 44100, 2), 44100)
    (first, first_track), (second, second_track) = read_sound(path), read_sound(path)
    np.testing.assert_array_equal(first.samples, second.samples)
    for name in ("data", "sizes", "pts", "durations"):
        np.testing.assert_array_equal(getattr(first_track, name), getattr(second_track, name))
    assert first_track.header == second_track.header


def test_probe_says_what_the_header_says(tmp_path: Path) -> None:
    form = SOUND_FORMATS["wav 24 bit 96 kHz"]
    path = write_sound(tmp_path / "voice", noise(1.5, 96000, 2), form)
    assert probe_sound(path) == SoundFacts("pcm_s24le", 96000, 2, 1.5)
