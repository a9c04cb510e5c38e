"""Bytes and milliseconds of lossless ways to store a chunk of frames: python -m tests.benchmarks.frame_codec

Frames: the sample portrait at 512 px warped smoothly, 12 in a row.
  local   head moves by up to 3 px and fades outward, mouth opens; the rest stands (what the embedded pack does)
  mouth   only the mouth moves
  far     as local, every sixth frame (key frames apart)
  global  every pixel moves (a neural pack)
  rendered  the sample as the embedded pack renders it, frames 30 to 41

Processor time on one core of the build machine (kB a frame, ms to encode / to decode it):

  kB/frame, ms enc/dec                local              mouth                far             global           rendered
  raw                       786.4   0.1/ 0.0   786.4   0.1/ 0.0   786.4   0.1/ 0.0   786.4   0.1/ 0.0   786.4   0.1/ 0.0
  zlib 1                    609.7  17.0/ 3.9   617.7  17.5/ 4.0   610.0  17.1/ 3.8   599.0  16.9/ 3.9   588.9  16.8/ 4.1
  difference, zlib 1        151.8   8.6/ 2.4    66.8   5.1/ 1.3   217.1  10.4/ 2.7   353.1  11.6/ 3.4   266.3   9.8/ 3.1
  PNG 6                     406.5  94.1/ 9.6   423.9  89.7/10.8   407.2 102.0/10.0   385.3 102.2/ 9.3   321.4 134.5/ 9.7
  WebP 4                    321.2 187.6/ 7.6   340.3 165.5/ 6.8   322.0 155.7/ 6.7   297.2 165.6/ 7.2   232.8 161.7/ 6.6
  difference, WebP 0        132.6   8.9/ 5.0    92.8  10.5/ 6.5   179.6   9.3/ 5.6   259.8  11.5/ 7.5   185.6  19.2/ 6.8
  difference, WebP 1        92.4  17.9/ 4.0    37.5  29.1/ 2.3   144.0  27.6/ 4.2   246.8  21.9/ 6.1   154.6  67.8/ 6.2
  FFV1                      317.7  20.9/23.6   337.5  21.6/24.7   318.7  20.7/24.7   292.2  21.1/20.1   226.9  20.1/24.5
  difference, FFV1 Golomb   95.1  14.1/11.9    36.8  10.9/ 6.4   137.3  14.3/13.9   223.0  20.9/24.9   151.7  17.4/20.5
  difference, FFV1 range    89.2  14.8/16.3    40.2  12.4/14.1   134.9  17.2/20.6   217.0  23.4/28.8   136.9  22.6/25.0
  MagicYUV                  415.1   4.4/ 3.6   429.9   4.6/ 3.5   415.5   4.7/ 3.6   396.7   4.7/ 3.4   315.9   4.7/ 3.1
  difference, MagicYUV      172.4   4.8/ 2.7   132.6   4.8/ 2.5   225.7   4.1/ 2.8   306.6   4.3/ 3.1   203.9   4.8/ 2.9
  H.264 ultrafast           112.2   4.7/ 4.3    46.8   2.4/ 2.2   148.8   4.0/ 4.9   313.5   6.0/ 8.3   193.0   4.9/ 6.2
  H.264 superfast           93.3  13.4/10.9    40.8   8.2/ 5.7   117.9  15.3/13.3   225.1  24.6/21.6   148.7  19.0/14.1
  H.264 medium              88.6  20.8/ 9.5    37.7   9.5/ 5.0   107.3  27.3/10.9   207.5  57.5/19.5   132.1  49.4/15.2
  VP9 speed 8               113.5  24.2/13.2    44.1  12.4/ 5.6   166.2  27.7/18.0   301.7  46.5/32.2   186.9  36.9/21.8
  codec                     127.5   6.6/ 2.0    46.0   2.9/ 1.4   181.0   7.6/ 2.6   306.6  11.4/ 3.7   203.9  11.8/ 3.3

"codec" is workers/frame_codec.py: MagicYUV of the difference to the previous frame, within its box. Rendering a frame
of 512 px takes 60 to 90 ms, so what is a third smaller (FFV1, H.264 medium) would cost half as much again; with FFV1
a film took 1.7 times as long on the fleet as in one process. zlib is no smaller and slower, and MagicYUV is FFmpeg's
own, so in every build of PyAV.
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

from pipeline import Report, RuntimeOptions, Settings, open_pack
from pipeline.stages.sound import read_sound
from pipeline.studio import Studio
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
    "difference, MagicYUV": Difference(Video("magicyuv", "magicyuv", "gbrp", pred="left"), 128),
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


def rendered_frames(first: int = 30, count: int = FRAMES) -> np.ndarray:
    """[count, 512, 512, 3] uint8: frames of the sample as the embedded pack renders it."""
    studio = Studio(open_pack(), RuntimeOptions())
    settings, report = Settings(), Report()
    portrait = studio.prepare_portrait(PORTRAIT, settings, report)
    sound, _ = read_sound(PORTRAIT.with_name("voice.wav"))
    motion = studio.make_motion(sound, settings, report, lambda done, windows: None)
    scene = studio.scene(studio.make_appearance(portrait, report), motion, sound.duration, settings)
    return np.stack([key.image for key in scene.render(range(first, first + count), portrait.pixels, report)])


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
