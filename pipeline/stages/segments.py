"""Stage 11, Film, first half: pictures -> a closed VP9 segment, encoded from nothing but its own frames."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import av
import numpy as np
from av.packet import Packet
from av.video.codeccontext import VideoCodecContext
from av.video.frame import VideoFrame
from av.video.reformatter import ColorRange, Colorspace, Interpolation, VideoReformatter
from numpy.typing import NDArray

from ..errors import FilmError
from ..values import U8
from .film_format import BT709, LIMITED_RANGE, FilmFormat, encoder_options

# Exact rounding, the same on every machine; full horizontal resolution in, so that chroma is averaged well.
CONVERSION = Interpolation.BICUBIC | Interpolation.ACCURATE_RND | Interpolation.BITEXACT | Interpolation.FULL_CHR_H_INP


@dataclass(frozen=True)
class Segment:
    """Packets of one closed segment, one a frame; the first is a key frame and nothing refers outside.

    `data`: [bytes] uint8, all packets end to end; `sizes`: [packets] int64, bytes of each.
    `pts`: [packets] int64, frame number within the segment; `keys`: [packets] bool.
    """

    data: U8
    sizes: NDArray[np.int64]
    pts: NDArray[np.int64]
    keys: NDArray[np.bool_]

    def __len__(self) -> int:
        """Frames."""
        return len(self.sizes)

    def packets(self) -> Iterator[tuple[U8, int, bool]]:
        """Data, pts and key flag of each packet."""
        ends = np.cumsum(self.sizes)
        for end, size, pts, key in zip(ends, self.sizes, self.pts, self.keys, strict=True):
            yield self.data[end - size : end], int(pts), bool(key)


@contextmanager
def film_errors(doing: str) -> Iterator[None]:
    """Errors of FFmpeg as FilmError: what was being done, FFmpeg's text and errno."""
    try:
        yield
    except av.FFmpegError as error:
        raise FilmError(f"{doing} failed: {error.strerror} (errno {error.errno})") from error


def video_context(film_format: FilmFormat) -> VideoCodecContext:
    """A fresh encoder for one segment, not yet open, tagged as BT.709 limited."""
    context = av.CodecContext.create("libvpx-vp9", "w")
    assert isinstance(context, VideoCodecContext)
    tag_video(context, film_format)
    context.options = encoder_options()
    return context


def tag_video(context: VideoCodecContext, film_format: FilmFormat) -> None:
    """Size, rate, pixel format and colours: what bitstream and container must say alike."""
    context.width = film_format.width
    context.height = film_format.height
    context.pix_fmt = "yuv420p"
    context.framerate = film_format.fps
    context.time_base = 1 / film_format.fps
    context.color_range = LIMITED_RANGE
    context.colorspace = context.color_primaries = context.color_trc = BT709
    # A segment is one group: only its first frame is a key frame.
    context.gop_size = film_format.segment_frames


def to_yuv(picture: U8, reformatter: VideoReformatter) -> VideoFrame:
    """[H, W, 3] uint8 RGB, full range -> yuv420p, BT.709 coefficients, limited range (Y 16 to 235)."""
    return reformatter.reformat(
        VideoFrame.from_ndarray(np.ascontiguousarray(picture), format="rgb24"),
        format="yuv420p",
        src_colorspace=Colorspace.ITU709,
        dst_colorspace=Colorspace.ITU709,
        src_color_range=ColorRange.JPEG,
        dst_color_range=ColorRange.MPEG,
        interpolation=CONVERSION,
        threads=1,
    )


def encode_segment(pictures: Iterable[U8], film_format: FilmFormat) -> Segment:
    """Encodes 1 to `segment_frames` pictures, each [H, W, 3] uint8 RGB of the format's size.

    Pictures are taken one at a time and not kept. The same pictures give the same packets, wherever and
    beside whatever else they are encoded. Raises FilmError.
    """
    shape = (film_format.height, film_format.width, 3)
    context = video_context(film_format)
    reformatter = VideoReformatter()
    packets: list[Packet[Any]] = []
    frames = 0
    with film_errors("encoding a segment"):
        for picture in pictures:
            if picture.shape != shape or picture.dtype != np.uint8:
                raise FilmError(
                    f"picture {frames} of a segment is {picture.shape} {picture.dtype}; the film's are {shape} uint8"
                )
            if frames == film_format.segment_frames:
                raise FilmError(f"a segment got more than its {frames} pictures")
            frame = to_yuv(picture, reformatter)
            frame.pts = frames
            frame.time_base = 1 / film_format.fps
            packets += context.encode(frame)
            frames += 1
        if frames == 0:
            raise FilmError("a segment got no pictures")
        packets += context.encode(None)
    segment = Segment(
        data=np.frombuffer(b"".join(map(bytes, packets)), np.uint8),
        sizes=np.array([packet.size for packet in packets], np.int64),
        pts=np.array([packet.pts for packet in packets], np.int64),
        keys=np.array([packet.is_keyframe for packet in packets], np.bool_),
    )
    if len(segment) != frames or not segment.keys[0]:
        raise FilmError(f"the encoder gave {len(segment)} packets for {frames} pictures")
    return segment
