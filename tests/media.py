"""Small real media made while the tests run: sounds and videos of many formats, and moving pictures."""

from __future__ import annotations

import io
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import numpy as np
from numpy.typing import NDArray
from PIL import Image

F32 = NDArray[np.float32]
U8 = NDArray[np.uint8]

LAYOUTS = {1: "mono", 2: "stereo", 6: "5.1"}


@dataclass(frozen=True)
class SoundFormat:
    """A way to store sound. `sample_format` None: the codec's first."""

    suffix: str
    codec: str
    rate: int = 44100
    channels: int = 2
    sample_format: str | None = None
    options: dict[str, str] = field(default_factory=dict)
    lossless: bool = False


SOUND_FORMATS = {
    "wav 16 bit 44.1 kHz": SoundFormat(".wav", "pcm_s16le", lossless=True),
    "wav u8 8 kHz mono": SoundFormat(".wav", "pcm_u8", 8000, 1, lossless=True),
    "wav 24 bit 96 kHz": SoundFormat(".wav", "pcm_s24le", 96000, lossless=True),
    "wav 32 bit 48 kHz": SoundFormat(".wav", "pcm_s32le", 48000, lossless=True),
    "wav float 48 kHz mono": SoundFormat(".wav", "pcm_f32le", 48000, 1, lossless=True),
    "wav double 44.1 kHz": SoundFormat(".wav", "pcm_f64le", lossless=True),
    "wav 5.1 48 kHz": SoundFormat(".wav", "pcm_s16le", 48000, 6, lossless=True),
    "flac 24 bit": SoundFormat(".flac", "flac", 96000, sample_format="s32", lossless=True),
    "mp3 44.1 kHz": SoundFormat(".mp3", "libmp3lame"),
    "mp3 8 kHz mono": SoundFormat(".mp3", "libmp3lame", 8000, 1),
    "ogg vorbis": SoundFormat(".ogg", "vorbis", options={"strict": "-2"}),
    "ogg opus mono": SoundFormat(".ogg", "libopus", 48000, 1),
    "m4a aac": SoundFormat(".m4a", "aac"),
    "m4a aac 5.1": SoundFormat(".m4a", "aac", 48000, 6),
    "m4a alac": SoundFormat(".m4a", "alac", lossless=True),
    "webm opus": SoundFormat(".webm", "libopus", 48000),
    "mkv pcm": SoundFormat(".mkv", "pcm_s16le", lossless=True),
    "aiff": SoundFormat(".aiff", "pcm_s16be", lossless=True),
}


def clicks(seconds: float, times: list[float], rate: int, channels: int = 1) -> F32:
    """[channels, n] float32: a quiet hum with a loud click of 2 ms at each of `times`, in every channel."""
    n = round(seconds * rate)
    sound = 0.02 * np.sin(2 * np.pi * 150 * np.arange(n) / rate)
    length = max(2, round(0.002 * rate))
    for time in times:
        start = round(time * rate)
        sound[start : start + length] += 0.8 * np.hanning(length + 2)[1:-1][: n - start]
    return np.repeat(sound[None].astype(np.float32), channels, axis=0)


def tone(seconds: float, rate: int, frequency: float = 220.0, level: float = 0.3) -> F32:
    """[n] float32."""
    return (level * np.sin(2 * np.pi * frequency * np.arange(round(seconds * rate)) / rate)).astype(np.float32)


def noise(seconds: float, rate: int, channels: int = 1, level: float = 0.1) -> F32:
    """[channels, n] float32, white, the same every time."""
    values = np.random.default_rng(0).normal(scale=level, size=(channels, round(seconds * rate)))
    return values.astype(np.float32)


def write_sound(path: Path, samples: F32, form: SoundFormat) -> Path:
    """Stores [channels, n] float samples; `path` gets the format's suffix."""
    path = path.with_suffix(form.suffix)
    with av.open(str(path), "w") as container:
        _encode_sound(container, _sound_stream(container, form), samples, form)
    return path


def write_wav(path: Path, samples: F32, rate: int) -> Path:
    """32-bit float WAV of [n] or [channels, n] samples, kept bit for bit."""
    samples = np.atleast_2d(samples)
    return write_sound(path, samples, SoundFormat(".wav", "pcm_f32le", rate, len(samples)))


def write_video(path: Path, samples: F32, form: SoundFormat, codec: str, seconds: float) -> Path:
    """A video of `seconds` at 10 fps whose sound track holds `samples`; `path` gets the format's suffix."""
    path = path.with_suffix(form.suffix)
    with av.open(str(path), "w") as container:
        video = container.add_stream(codec, rate=10)
        video.width, video.height, video.pix_fmt = 64, 48, "yuv420p"
        sound = _sound_stream(container, form)
        for picture in moving_pictures(round(seconds * 10), 64, 48):
            container.mux(video.encode(av.VideoFrame.from_ndarray(picture, format="rgb24")))
        container.mux(video.encode(None))
        _encode_sound(container, sound, samples, form)
    return path


def add_cover_art(path: Path) -> Path:
    """Puts an ID3v2.3 tag with a JPEG cover and a title before an MP3's sound."""
    picture = io.BytesIO()
    Image.fromarray(next(iter(moving_pictures(1, 300, 300)))).save(picture, "JPEG")
    frames = _id3_frame(b"TIT2", b"\x00A talk")
    frames += _id3_frame(b"APIC", b"\x00image/jpeg\x00\x03cover\x00" + picture.getvalue())
    size = len(frames)
    syncsafe = bytes((size >> shift) & 0x7F for shift in (21, 14, 7, 0))
    path.write_bytes(b"ID3\x03\x00\x00" + syncsafe + frames + path.read_bytes())
    return path


def moving_pictures(count: int, width: int, height: int) -> Iterator[U8]:
    """[height, width, 3] uint8: a soft disc wandering over a gradient, a picture a frame."""
    y, x = np.mgrid[0:height, 0:width].astype(np.float32)
    ground = np.stack([x / width * 180 + 30, y / height * 180 + 30, np.full_like(x, 90)], axis=-1)
    for index in range(count):
        centre_x = width * (0.5 + 0.3 * np.sin(index / 7))
        centre_y = height * (0.5 + 0.2 * np.cos(index / 5))
        distance = np.hypot(x - centre_x, y - centre_y) / (0.2 * min(width, height))
        disc = np.clip(1.5 - distance, 0, 1)[..., None]
        yield (ground * (1 - disc) + np.array([220, 170, 140]) * disc).astype(np.uint8)


def _sound_stream(container: Any, form: SoundFormat) -> Any:
    stream = container.add_stream(form.codec, rate=form.rate, options=dict(form.options))
    stream.layout = LAYOUTS[form.channels]
    stream.time_base = Fraction(1, form.rate)
    if form.sample_format is not None:
        stream.format = form.sample_format
    return stream


def _encode_sound(container: Any, stream: Any, samples: F32, form: SoundFormat) -> None:
    for start in range(0, samples.shape[1], 4096):
        part = np.ascontiguousarray(samples[:, start : start + 4096])
        frame = av.AudioFrame.from_ndarray(part, format="fltp", layout=LAYOUTS[form.channels])
        frame.sample_rate = form.rate
        frame.pts = start
        frame.time_base = Fraction(1, form.rate)
        container.mux(stream.encode(frame))
    container.mux(stream.encode(None))


def _id3_frame(name: bytes, content: bytes) -> bytes:
    return name + struct.pack(">IH", len(content), 0) + content
