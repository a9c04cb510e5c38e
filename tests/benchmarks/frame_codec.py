"""Bytes and milliseconds of lossless ways to store a chunk of frames: python -m tests.benchmarks.frame_codec

Frames: the sample portrait at 512 px warped smoothly, 12 in a row.
  local   head moves by up to 3 px and fades outward, mouth opens; the rest stands (what the embedded pack does)
  mouth   only the mouth moves
  far     as local, every sixth frame (key frames apart)
  global  every pixel moves (a neural pack)

On one core of the build machine, others busy beside it (kB a frame, ms to encode / to decode it):

                                        local          mouth            far         global
  raw                             786   0/  0    786   0/  0    786   0/  0    786   0/  0
  zlib 1                          610  18/  4    618  17/  4    610  24/  4    599  17/  4
  difference, zlib 1              152   6/  2     67   4/  1    217   7/  3    353  12/  4
  difference, gradient, zlib RLE  125  19/ 18     45  12/ 17    171  16/ 19    296  29/ 19
  PNG 6                           407 110/ 15    424  85/ 10    407 114/  9    385 121/ 12
  difference, PNG 1               144  17/  5     54   8/  3    204  20/  7    338  33/ 10
  WebP 1                          342  50/  8    361  61/  8    343  50/  7    316  52/  7
  WebP 4                          321 208/ 10    340 192/  7    322 237/  9    297 209/  9
  difference, WebP 0              133  13/  7     93  11/  7    180   9/  6    260  15/  7
  difference, WebP 2               91  27/  4     37  62/  4    141  42/  6    243  53/  8
  FFV1                            318  21/ 24    338  18/ 20    319  19/ 22    292  16/ 20
  MagicYUV                        415   4/  3    430   5/  3    416   5/  4    397   5/  3
  H.264 ultrafast                 112   4/  4     47   3/  2    149   5/  4    314   7/  9
  H.264 superfast                  93  11/ 10     41   8/  6    118  23/ 17    225  36/ 28
  H.264 medium                     89  27/ 12     38  17/  5    107  37/ 19    208  83/ 33
  VP9 speed 8                     114  37/ 19     44  23/  6    166  45/ 23    302  56/ 43
  codec                            93  25/  5     38  12/  2    144  27/  3    247  39/  9

"codec" is workers/frame_codec.py: WebP method 1 on the difference to the previous frame, within its box. Of what
needs no more than Pillow it is the smallest by far (difference, zlib 1: 1.4 to 1.8 times as much), and its time
is less than rendering the frame takes. H.264 superfast is its equal, smaller where frames lie far apart, and
was not taken because libx264 (GPL) is not in every build of PyAV.
"""

from __future__ import annotations

import argparse
import io
import time
import zlib
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import numpy as np
from PIL import Image

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
    """To the previous frame, modulo 256."""

    def __init__(self, inner: Raw) -> None:
        self.inner = inner

    def encode(self, frames: np.ndarray) -> list[bytes]:
        difference = frames.copy()
        difference[1:] -= frames[:-1]
        return self.inner.encode(difference)

    def decode(self, data: list[bytes], shape: Shape) -> np.ndarray:
        frames = self.inner.decode(data, shape).copy()
        for number in range(1, len(frames)):
            frames[number] += frames[number - 1]
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


def measure(way: Raw, frames: np.ndarray, repeats: int) -> tuple[float, float, float]:
    """kB a frame, ms to encode, ms to decode a frame (the best of the repeats). Raises where it is not exact."""
    encoding, decoding = [], []
    for _ in range(repeats):
        start = time.perf_counter()
        made = way.encode(frames)
        middle = time.perf_counter()
        back = way.decode(made, frames.shape)
        encoding.append(middle - start)
        decoding.append(time.perf_counter() - middle)
        if not np.array_equal(back, frames):
            raise AssertionError("these frames came back changed")
    size = sum(len(getattr(one, "data", one)) for one in made)
    scale = 1e3 / len(frames)
    return size / len(frames) / 1e3, min(encoding) * scale, min(decoding) * scale


def main() -> None:
    parser = argparse.ArgumentParser(description="lossless ways to store frames")
    parser.add_argument("--repeats", type=int, default=5)
    repeats = parser.parse_args().repeats
    picture = np.asarray(Image.open(PORTRAIT).convert("RGB").resize((512, 512)))
    kinds = ("local", "mouth", "far", "global")
    films = {kind: moving_frames(kind, picture) for kind in kinds}
    print(f"{'kB/frame, ms enc/dec':31s}" + "".join(f"{kind:>19s}" for kind in kinds))
    for name, way in WAYS.items():
        figures = [measure(way, films[kind], repeats) for kind in kinds]
        print(f"{name:31s}" + "".join(f"{size:8.1f} {enc:5.1f}/{dec:4.1f}" for size, enc, dec in figures), flush=True)


if __name__ == "__main__":
    main()
