"""Stage 11, Film, second half: segments and soundtrack -> a WebM file, without encoding anything again."""

from __future__ import annotations

import contextlib
import errno
import heapq
import os
import struct
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
from av.audio.stream import AudioStream
from av.container import OutputContainer
from av.packet import Packet, PacketSideData, packet_sidedata_type_from_literal
from av.video.stream import VideoStream

from ..errors import FilmError, OutputError
from ..values import Soundtrack
from ..whole_file import part_of
from .film_format import FilmFormat, encoder_options
from .segments import Segment, film_errors, tag_video
from .soundtrack import OPUS_RATE, opus_context

# Samples of an Opus packet of 20 ms, by the film's clock of 48 kHz.
OPUS_PACKET = 960

MUXER_OPTIONS = {
    # Nothing random and no date in the file: rendered twice, it is the same to the byte.
    "fflags": "+bitexact",
    # The index before the pictures, so that a player can seek before it has loaded the end.
    "cues_to_front": "1",
}


FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""What the system says where there is no more room: on the disk, for this user, for files of this size."""


@dataclass(frozen=True)
class FilmFacts:
    """What was written. Durations in seconds; `audio_offset` = start of the sound - start of the picture."""

    frames: int
    video_packets: int
    audio_packets: int
    picture_duration: float
    sound_duration: float
    audio_offset: float
    size: int


def write_film(
    path: Path,
    segments: Iterable[Segment],
    soundtrack: Soundtrack,
    film_format: FilmFormat,
    metadata: Mapping[str, str],
) -> FilmFacts:
    """Joins segments, in order, and the soundtrack into a WebM file at `path`.

    Segments are taken one at a time and let go once written. `metadata`: tags of the file, such as
    SYNTHETIC. The file appears under its name, replacing what was there, only when it is complete; whatever
    interrupts the writing, nothing of it is left. Raises OutputError where the folder cannot be written to or has
    no more room, FilmError where muxing fails.
    """
    part = part_of(path)
    try:
        if path.is_dir():  # said now, not after everything was rendered
            raise OutputError(f"{path} cannot be written: it is a folder. Give the film a name in it.")
        part.open("xb").close()
    except OSError as error:
        raise OutputError(
            f"{path} cannot be written: {error.strerror}. Choose a folder that exists and can be written to."
        ) from error
    try:
        frames = _mux(part, segments, soundtrack, film_format, metadata)
        size = part.stat().st_size
        try:
            os.replace(part, path)
        except OSError as error:
            raise OutputError(f"{path} cannot be written: {error.strerror}. Choose another name.") from error
    except BaseException as error:
        part.unlink(missing_ok=True)
        number = getattr(error.__cause__, "errno", None)
        if isinstance(error, FilmError) and number in FULL:
            reason = os.strerror(number)
            raise OutputError(f"{path} cannot be written: {reason}. Make room, or choose another place.") from error
        raise
    start = int(soundtrack.pts[0]) + _pre_skip(soundtrack)
    end = int(soundtrack.pts[-1] + soundtrack.durations[-1])
    return FilmFacts(
        frames=frames,
        video_packets=frames,
        audio_packets=len(soundtrack.sizes),
        picture_duration=float(frames / film_format.fps),
        sound_duration=(end - start) / OPUS_RATE,
        audio_offset=start / OPUS_RATE,
        size=size,
    )


def _mux(
    part: Path,
    segments: Iterable[Segment],
    soundtrack: Soundtrack,
    film_format: FilmFormat,
    metadata: Mapping[str, str],
) -> int:
    """Writes the file and returns the number of frames."""
    if len(soundtrack.sizes) == 0 or int(soundtrack.sizes.sum()) != len(soundtrack.data):
        raise FilmError("the soundtrack is damaged (its parts do not fit); read the sound again")
    frames = 0
    with film_errors("writing the film"), _opened(part) as container:
        video = _add_video(container, film_format)
        audio = _add_audio(container, soundtrack)
        container.metadata.update(metadata)
        pictures = _video_packets(segments, video, film_format)
        # Either side is looked ahead by one packet only.
        for _, packet in heapq.merge(pictures, _audio_packets(soundtrack, audio), key=lambda item: item[0]):
            frames += packet.stream is video
            container.mux_one(packet)
        if frames == 0:
            raise FilmError("a film needs at least one segment")
    return frames


@contextlib.contextmanager
def _opened(part: Path) -> Iterator[OutputContainer]:
    """The container, closed in any case. An error while closing does not hide the one that led there."""
    # "file:" keeps a colon in a name from being taken for a protocol.
    container = av.open(f"file:{part}", "w", format="webm", container_options=MUXER_OPTIONS)
    try:
        yield container
    except BaseException:
        with contextlib.suppress(av.FFmpegError):
            container.close()
        raise
    container.close()


def _add_video(container: OutputContainer, film_format: FilmFormat) -> VideoStream:
    """A stream whose encoder is opened for its parameters and never fed."""
    stream = container.add_stream("libvpx-vp9", rate=film_format.fps, options=encoder_options())
    tag_video(stream.codec_context, film_format)
    return stream


def _add_audio(container: OutputContainer, soundtrack: Soundtrack) -> AudioStream:
    template = opus_context(soundtrack.channels)
    if bytes(template.extradata or b"") != soundtrack.header:
        # The container's pre-skip comes from this encoder: another one would shift the sound unheard.
        raise FilmError("the soundtrack was made by another Opus encoder than the one here; read it again")
    stream = container.add_stream("libopus", rate=OPUS_RATE)
    stream.codec_context.layout = template.layout
    stream.codec_context.time_base = Fraction(1, OPUS_RATE)
    return stream


def _pre_skip(soundtrack: Soundtrack) -> int:
    """Samples the decoder throws away first (OpusHead, RFC 7845 section 5.1)."""
    return int(struct.unpack_from("<H", soundtrack.header, 10)[0])


def _video_packets(
    segments: Iterable[Segment], stream: VideoStream, film_format: FilmFormat
) -> Iterator[tuple[Fraction, Packet[Any]]]:
    """Time in seconds and packet. Every time is counted from the film's start, so rounding never adds up."""
    first = 0
    for segment in segments:
        for data, pts, key in segment.packets():
            packet = Packet(data.tobytes())
            packet.stream = stream
            packet.time_base = 1 / film_format.fps
            packet.pts = packet.dts = first + pts
            packet.duration = 1
            packet.is_keyframe = key
            yield packet.pts / film_format.fps, packet
        first += len(segment)


def _audio_packets(soundtrack: Soundtrack, stream: AudioStream) -> Iterator[tuple[Fraction, Packet[Any]]]:
    end = 0
    for size, pts, duration in zip(soundtrack.sizes, soundtrack.pts, soundtrack.durations, strict=True):
        start, end = end, end + int(size)
        packet = Packet(soundtrack.data[start:end].tobytes())
        packet.stream = stream
        packet.time_base = Fraction(1, OPUS_RATE)
        packet.pts = packet.dts = int(pts)
        packet.duration = int(duration)
        packet.is_keyframe = True
        if duration < OPUS_PACKET:
            packet.set_sidedata(_discard(OPUS_PACKET - int(duration)))
        yield Fraction(int(pts), OPUS_RATE), packet


def _discard(samples: int) -> PacketSideData:
    """Tells the muxer how many samples at a packet's end are the encoder's filling (WebM DiscardPadding)."""
    # PyAV's stub leaves the constructor out.
    side_data = PacketSideData(packet_sidedata_type_from_literal("skip_samples"), 10)  # type: ignore[call-arg]
    # AV_PKT_DATA_SKIP_SAMPLES: samples to skip at the start, to discard at the end, and the reasons of both.
    side_data.update(struct.pack("<IIBB", 0, samples, 0, 0))
    return side_data
