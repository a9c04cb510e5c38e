"""Opening a recording and decoding its sound, whatever container and codec it comes in."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import av
import numpy as np
from av.audio.frame import AudioFrame
from av.audio.stream import AudioStream
from av.container import InputContainer

from ..errors import SoundError

log = logging.getLogger(__name__)

# Finite samples of a float file beyond this (+18 dBFS) are damage, and would turn into infinities later.
LOUDEST = 8.0

# Packets that may fail to decode before the file counts as damaged: players skip a broken packet too, and
# a tag at the end of an MP3 reads as one or two of them.
STRAY_PACKETS = 3
DAMAGED_SHARE = 0.05

# Share of the length in the header by which the sound may fall short before it is worth a word: a file cut
# off while it was saved. No error, since headers are wrong more often than files are cut off.
MISSING_SHARE = 0.1

# Layouts for files that give only a number of channels (FFmpeg's own default order).
DEFAULT_LAYOUTS = {1: "mono", 2: "stereo", 3: "2.1", 4: "4.0", 5: "5.0", 6: "5.1", 7: "6.1", 8: "7.1"}

# A recording is one file. Without this, a playlist in disguise makes FFmpeg open the files and addresses it
# names.
NO_OTHER_FILES = {"protocol_whitelist": "data"}

# Tags in another encoding than UTF-8 are an error to PyAV 18 unless it is told otherwise; 19 takes them as they are.
ANY_TAGS: dict[str, Any] = {"metadata_errors": "replace"} if int(av.__version__.partition(".")[0]) < 19 else {}


def name_of(source: Path | BinaryIO) -> str:
    """What a message calls the recording."""
    name = source if isinstance(source, Path) else getattr(source, "name", None)
    return str(name) if isinstance(name, str | Path) else "the recording"


@contextmanager
def opened_sound(source: Path | BinaryIO) -> Iterator[tuple[InputContainer, AudioStream]]:
    """The container and its first audio stream, closed afterwards.

    A path is opened by Python, so that no name is taken for an address. A file object stays open.
    Raises SoundError where there is no file, nothing in it, or no sound that can be decoded.
    """
    name = name_of(source)
    if isinstance(source, Path):
        try:
            file = source.open("rb")
        except OSError as error:
            raise SoundError(f"{name} cannot be opened: {error.strerror}. Check the path.") from error
        with file, opened_sound(file) as opened:
            yield opened
        return
    if not source.seekable():
        raise SoundError(f"{name} is a pipe, and containers are read back and forth. Save it as a file and give that.")
    start = source.tell()
    if not source.read(1):
        raise SoundError(f"{name} is empty (0 bytes). Give a recording with speech in it.")
    source.seek(start)
    try:
        container = av.open(source, "r", options=NO_OTHER_FILES, **ANY_TAGS)
    except (av.FFmpegError, ValueError) as error:
        reason = error.strerror if isinstance(error, av.FFmpegError) else str(error)
        raise SoundError(
            f"{name} cannot be read as sound or video ({reason}). Is it complete? "
            "Convert it to WAV, FLAC, MP3, OGG, M4A, WebM or MP4."
        ) from error
    with container:
        if not container.streams.audio:
            raise SoundError(f"{name} has no audio stream. Give a recording, or a video with sound.")
        stream = container.streams.audio[0]
        if stream.codec_context is None:
            raise SoundError(f"{name} is coded in a way that is not known here. Convert it to WAV or FLAC.")
        yield container, stream


def header_duration(container: InputContainer, stream: AudioStream) -> float | None:
    """Seconds by the header; None where it does not say. Without a count of frames it is an estimate."""
    if stream.duration is not None and stream.time_base is not None:
        return float(stream.duration * stream.time_base)
    return None if container.duration is None else container.duration / 1e6


def decoded_frames(container: InputContainer, stream: AudioStream, name: str) -> Iterator[AudioFrame]:
    """The stream's frames, every sample finite and within ±`LOUDEST`, in a layout with a name.

    Timestamps are left out of account: what follows a gap or a late start follows without it, since the
    film's picture is made from the very same samples. A packet that cannot be decoded is skipped and said
    so in the log, as is a sound much shorter than its header says; more than a few raise SoundError.
    """
    packets = failed = 0
    seconds = 0.0
    try:
        for packet in container.demux(stream):
            packets += 1
            try:
                frames = packet.decode()
            except av.FFmpegError as error:
                log.debug("%s: packet %d: %s", name, packets, error.strerror)
                failed += 1
                continue
            for frame in frames:
                if frame.samples:
                    seconds += frame.samples / frame.sample_rate
                    yield _cleaned(frame)
    except av.FFmpegError as error:
        raise SoundError(
            f"{name} breaks off after {seconds:.1f} s ({error.strerror}). Save or download it again."
        ) from error
    if failed > STRAY_PACKETS + DAMAGED_SHARE * packets:
        raise SoundError(
            f"{name} is damaged: {failed} of its {packets} packets cannot be decoded. Save or download it again."
        )
    if failed:
        log.warning("%s: %d of %d packets could not be decoded and were left out", name, failed, packets)
    promised = header_duration(container, stream)
    if promised is not None and seconds < promised - max(1.0, MISSING_SHARE * promised):
        log.warning("%s: only %.1f s of the %.1f s that its header names are there", name, seconds, promised)


def _cleaned(frame: AudioFrame) -> AudioFrame:
    """The frame itself where nothing is wrong with it, else a copy with sound numbers and layout."""
    layout = frame.layout.name
    named = not layout.endswith(" channels")
    if not named:
        layout = DEFAULT_LAYOUTS.get(frame.layout.nb_channels, layout)
    samples = None
    if frame.format.name.startswith(("flt", "dbl")):
        samples = frame.to_ndarray()
        if np.abs(samples).max() <= LOUDEST:  # false for NaN as well
            samples = None
        else:
            samples = np.clip(np.nan_to_num(samples, nan=0.0, posinf=1.0, neginf=-1.0), -LOUDEST, LOUDEST)
    if samples is None and named:
        return frame
    clean = AudioFrame.from_ndarray(
        frame.to_ndarray() if samples is None else samples, format=frame.format.name, layout=layout
    )
    clean.sample_rate = frame.sample_rate
    return clean
