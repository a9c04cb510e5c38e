"""Stage 11, first half: closed segments, the same everywhere, in the right colours."""

from __future__ import annotations

import os
import weakref
from collections.abc import Iterator
from fractions import Fraction

import av
import numpy as np
import pytest

from pipeline.errors import FilmError
from pipeline.stages.film_format import FilmFormat
from pipeline.stages.segments import Segment, encode_segment
from pipeline.values import U8
from tests.media import moving_pictures

FORMAT = FilmFormat(128, 96, Fraction(25), 20)


def decoded(segments: list[Segment]) -> list[av.VideoFrame]:
    """Frames of these packets in a fresh decoder."""
    decoder = av.CodecContext.create("vp9", "r")
    frames: list[av.VideoFrame] = []
    for segment in segments:
        for data, _, _ in segment.packets():
            frames += decoder.decode(av.Packet(data.tobytes()))
    return frames + decoder.decode(None)


def planes(frame: av.VideoFrame) -> tuple[U8, U8, U8]:
    """Y, U, V as they are coded, without padding."""
    return tuple(  # type: ignore[return-value]
        np.frombuffer(plane, np.uint8).reshape(plane.height, plane.line_size)[:, : plane.width]
        for plane in frame.planes
    )


def assert_same(first: Segment, second: Segment) -> None:
    for name in ("data", "sizes", "pts", "keys"):
        np.testing.assert_array_equal(getattr(first, name), getattr(second, name))


@pytest.fixture(scope="module")
def pictures() -> list[U8]:
    return list(moving_pictures(40, 128, 96))


def test_a_packet_a_frame_and_only_the_first_is_a_key_frame(pictures: list[U8]) -> None:
    segment = encode_segment(pictures[:20], FORMAT)
    assert len(segment) == 20
    assert segment.pts.tolist() == list(range(20))
    assert segment.keys.tolist() == [True] + [False] * 19
    assert segment.sizes.sum() == len(segment.data)


def test_nothing_refers_outside(pictures: list[U8]) -> None:
    first, second = encode_segment(pictures[:20], FORMAT), encode_segment(pictures[20:], FORMAT)
    joined, alone = decoded([first, second])[20:], decoded([second])
    assert len(alone) == 20
    for one, other in zip(joined, alone, strict=True):
        np.testing.assert_array_equal(one.to_ndarray(), other.to_ndarray())


def test_encoded_apart_or_again_the_same(pictures: list[U8]) -> None:
    alone = encode_segment(pictures[20:], FORMAT)
    encode_segment(pictures[:20], FORMAT)
    assert_same(encode_segment(iter(pictures[20:]), FORMAT), alone)


def test_the_number_of_cores_does_not_matter() -> None:
    """At a width where libvpx would use two tiles, and with as many cores as there are against one."""
    form = FilmFormat(1024, 128, Fraction(25), 5)
    frames = list(moving_pictures(5, 1024, 128))
    cores = os.sched_getaffinity(0)
    many = encode_segment(frames, form)
    os.sched_setaffinity(0, {min(cores)})
    try:
        one = encode_segment(frames, form)
    finally:
        os.sched_setaffinity(0, cores)
    assert_same(one, many)


def bt709(rgb: tuple[int, int, int]) -> tuple[float, float, float]:
    """Limited-range Y, U, V of full-range R, G, B (ITU-R BT.709-6, items 3.2 to 3.4 and 4.6)."""
    red, green, blue = (value / 255 for value in rgb)
    luma = 0.2126 * red + 0.7152 * green + 0.0722 * blue
    return 16 + 219 * luma, 128 + 224 * (blue - luma) / 1.8556, 128 + 224 * (red - luma) / 1.5748


@pytest.mark.parametrize(
    "rgb",
    [
        (255, 255, 255),
        (0, 0, 0),
        (128, 128, 128),
        (255, 0, 0),
        (0, 255, 0),
        (0, 0, 255),
        (224, 172, 105),
        (60, 90, 40),
    ],
)
def test_colours_are_bt709_limited(rgb: tuple[int, int, int]) -> None:
    picture = np.full((96, 128, 3), rgb, np.uint8)
    frame = decoded([encode_segment([picture] * 3, FORMAT)])[-1]
    for plane, value in zip(planes(frame), bt709(rgb), strict=True):
        assert np.abs(plane.astype(int) - value).max() <= 2
    assert frame.color_range == 1  # limited
    assert frame.colorspace == 1  # BT.709
    shown = frame.reformat(format="rgb24", src_colorspace="ITU709", dst_color_range="JPEG").to_ndarray()
    assert np.abs(shown.astype(int) - rgb).max() <= 3


def test_format_is_420(pictures: list[U8]) -> None:
    frame = decoded([encode_segment(pictures[:1], FORMAT)])[0]
    assert frame.format.name == "yuv420p"
    assert (frame.width, frame.height) == (128, 96)


@pytest.mark.parametrize("size", [(130, 98), (34, 18), (514, 66)])
def test_no_garbage_at_the_edges(size: tuple[int, int]) -> None:
    """Sizes that are no multiple of a block: the last column and row are as good as the rest."""
    width, height = size
    frames = list(moving_pictures(3, width, height))
    shown = decoded([encode_segment(frames, FilmFormat(width, height, Fraction(25), 3))])
    for frame, picture in zip(shown, frames, strict=True):
        assert (frame.width, frame.height) == size
        luma = 16 + 219 / 255 * (picture @ np.array([0.2126, 0.7152, 0.0722]))
        error = np.abs(planes(frame)[0] - luma)
        assert error[:, -4:].mean() < 3
        assert error[-4:].mean() < 3


def psnr(first: U8, second: U8) -> float:
    return float(10 * np.log10(255**2 / max(1e-9, np.mean((first.astype(float) - second) ** 2))))


def test_quality_is_high_and_joins_do_not_show(pictures: list[U8]) -> None:
    shown = decoded([encode_segment(pictures[:20], FORMAT), encode_segment(pictures[20:], FORMAT)])
    lumas = [16 + 219 / 255 * (picture @ np.array([0.2126, 0.7152, 0.0722])) for picture in pictures]
    quality = [psnr(planes(frame)[0], luma) for frame, luma in zip(shown, lumas, strict=True)]
    assert min(quality) > 38
    # A corner that nothing moves through changes by less than a level where the segments join.
    before, after = (planes(frame)[0][:16, :16].astype(float) for frame in shown[19:21])
    assert np.abs(before - after).mean() < 1


@pytest.mark.parametrize(
    ("frames", "message"),
    [
        ([], "got no pictures"),
        ([np.zeros((96, 126, 3), np.uint8)], r"picture 0 of a segment is \(96, 126, 3\)"),
        ([np.zeros((96, 128, 3), np.float32)], "float32"),
        ([np.zeros((96, 128, 3), np.uint8)] * 21, "more than its 20 pictures"),
    ],
)
def test_pictures_that_do_not_fit(frames: list[U8], message: str) -> None:
    with pytest.raises(FilmError, match=message):
        encode_segment(frames, FORMAT)


def test_pictures_are_taken_one_at_a_time_and_not_kept() -> None:
    taken: list[weakref.ref[U8]] = []

    def stream() -> Iterator[U8]:
        for index in range(20):
            assert sum(reference() is not None for reference in taken) <= 1
            picture = np.full((96, 128, 3), index * 10, np.uint8)
            taken.append(weakref.ref(picture))
            yield picture
            del picture

    assert len(encode_segment(stream(), FORMAT)) == 20
