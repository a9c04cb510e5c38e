"""Bytes and milliseconds of lossless ways to store a chunk of frames: python -m tests.benchmarks.frame_codec

Frames: the sample portrait at 512 px warped smoothly, 12 in a row.
  local   head moves by up to 3 px and fades outward, mouth opens; the rest stands (what the embedded pack does)
  mouth   only the mouth moves
  far     as local, every sixth frame (key frames apart)
  global  every pixel moves (a neural pack)
  rendered  the sample as the embedded pack renders it, frames 30 to 41

Processor time on one core of the build machine (kB a frame, ms to encode / to decode it):

                                 local          mouth            far         global       rendered
  raw                      786   0/  0    786   0/  0    786   0/  0    786   0/  0    786   0/  0
  zlib 1                   610  21/  4    618  26/  5    610  25/  5    599  25/  5    591  19/  4
  difference, zlib 1       152   7/  2     67   4/  2    217  11/  3    353  17/  4    269  11/  3
  PNG 6                    407  95/ 12    424  88/  9    407  96/ 10    385 108/ 11    325 132/ 11
  difference, PNG 1        144  13/  4     54   6/  3    204  15/  5    338  28/  8    245  20/  7
  WebP 1                   342  70/  8    361  68/  9    343  61/  7    316  56/  9    243  53/  7
  WebP 4                   321 156/  7    340 158/  7    322 154/  8    297 150/  7    238 155/  8
  difference, WebP 0       133  10/  6     93   8/  6    180   9/  6    260  13/  8    189  21/  7
  difference, WebP 1        92  19/  4     38  35/  2    144  30/  5    247  29/  8    157  70/  7
  FFV1                     318  22/ 25    338  22/ 26    319  20/ 24    292  18/ 22    232  17/ 19
  difference, FFV1 Golomb   95  10/ 12     37  10/  6    137  15/ 15    223  17/ 21    154  15/ 18
  difference, FFV1 range    89  16/ 19     40  14/ 14    135  21/ 23    217  23/ 30    140  18/ 20
  MagicYUV                 415   5/  4    430   5/  4    416   4/  3    397   5/  3    319   5/  3
  H.264 ultrafast          112   6/  5     47   4/  3    149   5/  5    314   8/ 10    195   6/  7
  H.264 superfast           93  13/ 11     41   8/  6    118  14/ 13    225  24/ 20    152  14/ 14
  H.264 medium              89  29/ 11     38  13/  6    107  37/ 13    208  53/ 19    136  38/ 13
  VP9 speed 8              114  22/ 14     44  12/  6    166  23/ 16    302  38/ 29    190  28/ 20
  codec                     87  16/ 14     36   6/  4    134  18/ 16    220  35/ 32    140  29/ 21

"codec" is workers/frame_codec.py: FFV1 of the difference to the previous frame, within its box. On rendered frames
only H.264 medium is smaller, by 3 %; what is quicker is larger by 9 % (H.264 superfast) and more. FFV1 is FFmpeg's
own, so in every build of PyAV; libx264 (GPL) is not.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import time
import zlib
from collections.abc import Iterable, Iterator
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import av
import numpy as np
from PIL import Image

from pipeline import Settings, render
from pipeline.studio import Scene
from pipeline.values import KeyFrame
from workers.frame_codec import restore, store

FRAMES = 12
PORTRAIT = Path(__file__).parents[2] / "samples" / "portrait.png"

Shape = tuple[int, ...]


class Raw:
    """Bytes as they are. Others: `encode` frames [n, H, W, 3] to a list of bytes, `decode` them back."""

    def encode(self, frames: np.ndarray) -> list[bytes]:
        return [frames.tobytes()]

    def decode(self, data: list[bytes], shape: Shape) -> np.ndarray:
        return np.frombuffer(data[0], np.uint8).reshape(shape)


class Zlib(Raw):
    def __init__(self, level: int, strategy: int = zlib.Z_DEFAULT_STRATEGY) -> None:
        self.level, self.strategy = level, strategy

    def encode(self, frames: np.ndarray) -> list[bytes]:
        packer = zlib.compressobj(self.level, zlib.DEFLATED, 15, 9, self.strategy)
        return [packer.compress(frames.tobytes()) + packer.flush()]

    def decode(self, data: list[bytes], shape: Shape) -> np.ndarray:
        return np.frombuffer(zlib.decompress(data[0]), np.uint8).reshape(shape)


class Pillow(Raw):
    def __init__(self, kind: str, **options: Any) -> None:
        self.kind, self.options = kind, options

    def encode(self, frames: np.ndarray) -> list[bytes]:
        made = []
        for frame in frames:
            buffer = io.BytesIO()
            Image.fromarray(frame).save(buffer, self.kind, **self.options)
            made.append(buffer.getvalue())
        return made

    def decode(self, data: list[bytes], shape: Shape) -> np.ndarray:
        return np.stack([np.asarray(Image.open(io.BytesIO(one)).convert("RGB")) for one in data])


class Difference(Raw):
    """To the previous frame, modulo 256; `middle` is what no difference becomes."""

    def __init__(self, inner: Raw, middle: int = 0) -> None:
        self.inner, self.middle = inner, np.uint8(middle)

    def encode(self, frames: np.ndarray) -> list[bytes]:
        difference = frames.copy()
        difference[1:] -= frames[:-1] - self.middle
        return self.inner.encode(difference)

    def decode(self, data: list[bytes], shape: Shape) -> np.ndarray:
        frames = self.inner.decode(data, shape).copy()
        for number in range(1, len(frames)):
            frames[number] += frames[number - 1] - self.middle
        return frames


class Gradient(Raw):
    """Green taken off red and blue, then differences along and across."""

    def __init__(self, inner: Raw) -> None:
        self.inner = inner

    def encode(self, frames: np.ndarray) -> list[bytes]:
        work = frames.copy()
        work[..., (0, 2)] -= frames[..., 1:2]
        work[:, :, 1:] -= work[:, :, :-1].copy()
        work[:, 1:] -= work[:, :-1].copy()
        return self.inner.encode(work)

    def decode(self, data: list[bytes], shape: Shape) -> np.ndarray:
        work = self.inner.decode(data, shape)
        work = work.cumsum(axis=1, dtype=np.uint8).cumsum(axis=2, dtype=np.uint8)
        work[..., (0, 2)] += work[..., 1:2]
        return work


class Video(Raw):
    """An encoder of PyAV on one thread; the first item is its extradata."""

    def __init__(self, encoder: str, decoder: str, pixels: str, **options: str) -> None:
        self.encoder, self.decoder, self.pixels, self.options = encoder, decoder, pixels, options

    def encode(self, frames: np.ndarray) -> list[bytes]:
        context: Any = av.CodecContext.create(self.encoder, "w")
        context.height, context.width = frames.shape[1:3]
        context.pix_fmt, context.time_base, context.framerate = self.pixels, Fraction(1, 25), Fraction(25)
        context.thread_count, context.options = 1, self.options
        packets = []
        for number, frame in enumerate(frames):
            picture = av.VideoFrame.from_ndarray(frame, "rgb24").reformat(format=self.pixels)
            picture.pts = number
            packets += context.encode(picture)
        return [context.extradata or b"", *map(bytes, packets + context.encode(None))]

    def decode(self, data: list[bytes], shape: Shape) -> np.ndarray:
        context: Any = av.CodecContext.create(self.decoder, "r")
        context.height, context.width = shape[1:3]
        context.pix_fmt, context.thread_count = self.pixels, 1
        if data[0]:
            context.extradata = data[0]
        frames = [frame for one in data[1:] for frame in context.decode(av.Packet(one))] + context.decode(None)
        return np.stack([frame.to_ndarray(format="rgb24") for frame in frames])


class Codec(Raw):
    """What the fleet uses."""

    def encode(self, frames: np.ndarray) -> list[Any]:
        return [store(frame, frames[n - 1] if n else None) for n, frame in enumerate(frames)]

    def decode(self, data: list[Any], shape: Shape) -> np.ndarray:
        frames: list[np.ndarray] = []
        for stored in data:
            frames.append(restore(stored, shape[1:], frames[-1] if frames else None))
        return np.stack(frames)


WAYS: dict[str, Raw] = {
    "raw": Raw(),
    "zlib 1": Zlib(1),
    "zlib 6": Zlib(6),
    "difference, zlib 1": Difference(Zlib(1)),
    "difference, zlib 6": Difference(Zlib(6)),
    "gradient, zlib RLE": Gradient(Zlib(1, zlib.Z_RLE)),
    "difference, gradient, zlib RLE": Difference(Gradient(Zlib(1, zlib.Z_RLE))),
    "PNG 1": Pillow("PNG", compress_level=1),
    "PNG 6": Pillow("PNG", compress_level=6),
    "difference, PNG 1": Difference(Pillow("PNG", compress_level=1)),
    "WebP 0": Pillow("WEBP", lossless=True, method=0, quality=0),
    "WebP 1": Pillow("WEBP", lossless=True, method=1, quality=0),
    "WebP 4": Pillow("WEBP", lossless=True, method=4, quality=75),
    "difference, WebP 0": Difference(Pillow("WEBP", lossless=True, method=0, quality=0)),
    "difference, WebP 1": Difference(Pillow("WEBP", lossless=True, method=1, quality=0)),
    "difference, WebP 2": Difference(Pillow("WEBP", lossless=True, method=2, quality=20)),
    "FFV1": Video("ffv1", "ffv1", "bgr0", level="3"),
    "difference, FFV1 Golomb": Difference(Video("ffv1", "ffv1", "bgr0", level="3"), 128),
    "difference, FFV1 range": Difference(Video("ffv1", "ffv1", "bgr0", level="3", coder="range_def"), 128),
    "FFV huffman": Video("ffvhuff", "ffvhuff", "rgb24"),
    "MagicYUV": Video("magicyuv", "magicyuv", "gbrp"),
    "H.264 ultrafast": Video("libx264rgb", "h264", "rgb24", preset="ultrafast", qp="0"),
    "H.264 superfast": Video("libx264rgb", "h264", "rgb24", preset="superfast", qp="0"),
    "H.264 medium": Video("libx264rgb", "h264", "rgb24", preset="medium", qp="0"),
    "VP9 speed 8": Video("libvpx-vp9", "vp9", "gbrp", lossless="1", deadline="realtime", **{"cpu-used": "8"}),
    "codec": Codec(),
}


def moving_frames(kind: str, picture: np.ndarray, count: int = FRAMES) -> np.ndarray:
    """[count, H, W, 3] uint8: see the top."""
    y, x = np.mgrid[0 : picture.shape[0], 0 : picture.shape[1]].astype(np.float32)
    head = np.exp(-((((x - 225) / 130) ** 2 + ((y - 130) / 150) ** 2) ** 2))
    mouth = np.exp(-(((x - 225) / 30) ** 2 + ((y - 165) / 20) ** 2))
    head, mouth = np.where(head < 0.01, 0, head), np.where(mouth < 0.01, 0, mouth)
    weight = {"local": head, "far": head, "mouth": 0 * x, "global": 0 * x + 1}[kind]
    frames = []
    for t in range(0, count * (6 if kind == "far" else 1), 6 if kind == "far" else 1):
        opening = 8 * np.sin(0.9 * t) ** 2 * mouth * (y - 165) / 20
        dx, dy = 3 * np.sin(0.11 * t) * weight, 2 * np.sin(0.13 * t + 1) * weight
        frames.append(_sampled(picture.astype(np.float32), x + dx, y + dy + opening))
    return np.stack(frames)


def _sampled(picture: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Bilinear."""
    x = np.clip(x, 0, picture.shape[1] - 1.001)
    y = np.clip(y, 0, picture.shape[0] - 1.001)
    left, top = x.astype(int), y.astype(int)
    fx, fy = (x - left)[..., None], (y - top)[..., None]
    above = picture[top, left] * (1 - fx) + picture[top, left + 1] * fx
    below = picture[top + 1, left] * (1 - fx) + picture[top + 1, left + 1] * fx
    return np.rint(above * (1 - fy) + below * fy).astype(np.uint8)


class _EnoughError(Exception):
    """Ends a rendering."""


def rendered_frames(first: int = 30, count: int = FRAMES) -> np.ndarray:
    """[count, 512, 512, 3] uint8: key frames of the sample rendered with the embedded pack."""
    images: list[np.ndarray] = []

    between = Scene.between

    def watched(frames: Iterable[KeyFrame]) -> Iterator[KeyFrame]:
        for frame in frames:
            images.append(frame.image)
            if len(images) == first + count:
                raise _EnoughError
            yield frame

    with (
        TemporaryDirectory() as folder,
        patch.object(Scene, "between", lambda scene, frames: between(scene, watched(frames))),
        contextlib.suppress(_EnoughError),
    ):
        render(PORTRAIT, PORTRAIT.with_name("voice.wav"), Path(folder) / "film.webm", Settings(frame="crop"))
    return np.stack(images[first:])


def measure(way: Raw, frames: np.ndarray, repeats: int) -> tuple[float, float, float]:
    """kB a frame, ms to encode, ms to decode a frame (the best of the repeats). Raises where it is not exact."""
    encoding, decoding = [], []
    for _ in range(repeats):
        start = time.process_time()
        made = way.encode(frames)
        middle = time.process_time()
        back = way.decode(made, frames.shape)
        encoding.append(middle - start)
        decoding.append(time.process_time() - middle)
        if not np.array_equal(back, frames):
            raise AssertionError("these frames came back changed")
    size = sum(len(getattr(one, "data", one)) for one in made)
    scale = 1e3 / len(frames)
    return size / len(frames) / 1e3, min(encoding) * scale, min(decoding) * scale


def main() -> None:
    parser = argparse.ArgumentParser(description="lossless ways to store frames")
    parser.add_argument("--repeats", type=int, default=3)
    repeats = parser.parse_args().repeats
    picture = np.asarray(Image.open(PORTRAIT).convert("RGB").resize((512, 512)))
    films = {kind: moving_frames(kind, picture) for kind in ("local", "mouth", "far", "global")}
    films["rendered"] = rendered_frames()
    print(f"{'kB/frame, ms enc/dec':31s}" + "".join(f"{kind:>19s}" for kind in films))
    for name, way in WAYS.items():
        figures = [measure(way, films[kind], repeats) for kind in films]
        print(f"{name:31s}" + "".join(f"{size:8.1f} {enc:5.1f}/{dec:4.1f}" for size, enc, dec in figures), flush=True)


if __name__ == "__main__":
    main()
