"""What a film is made of: size, frame rate, segments, and the encoder's settings that follow from them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from ..errors import FilmError, SettingsError

# Seconds of a segment. Each begins with a key frame, which is where players can seek to; a shorter segment
# costs size (a key frame weighs as much as 2 s of the rest), a longer one makes seeking slow.
SEGMENT_SECONDS = 4

# VP9 can do more, browsers' decoders and this encoder's memory cannot.
LONGEST_SIDE = 4096

SLOWEST, FASTEST = 1, 60
"""Frame rates that players show as they are."""

# Shares of a frame by which a sound may outlast the picture: duration * fps is rarely exact in floats.
FRAME_TOLERANCE = 1e-6

# What H.273 calls BT.709 (matrix, primaries, transfer alike) and limited range, in FFmpeg's numbers.
BT709 = 1
LIMITED_RANGE = 1

# Constant quality. Measured on a talking portrait of 512 x 512 (100-frame segments, one core, with the
# conversion from RGB; PSNR of Y): realtime, crf 22: speed 8 45.6 dB, 600 kb/s, 7.6 ms a frame; speed 7
# 45.9 dB, 547 kb/s, 6.8 ms; speed 6 46.0 dB, 542 kb/s, 6.7 ms. Good, speed 4 and 5, crf 28: 44.9 and 44.5
# dB, 256 kb/s, 31 and 35 ms: half the size for five times the work. Worst frame 44.5 dB; at the joins
# the static background changes by 0.35 of 255 on average, which is not seen.
CRF = 22
SPEED = 6


@dataclass(frozen=True)
class FilmFormat:
    """Size in pixels (even), exact frame rate, and frames a segment (the last one may have fewer).

    Raises FilmError for a size, a rate or a segment length that cannot be encoded.
    """

    width: int
    height: int
    fps: Fraction
    segment_frames: int

    def __post_init__(self) -> None:
        for name, side in (("width", self.width), ("height", self.height)):
            if side % 2 or not 2 <= side <= LONGEST_SIDE:
                raise FilmError(f"the film's {name} is {side}; 4:2:0 needs an even number, 2 to {LONGEST_SIDE}")
        if not SLOWEST <= self.fps <= FASTEST:
            raise FilmError(f"the film's frame rate is {self.fps}; it must lie between {SLOWEST} and {FASTEST}")
        if self.segment_frames < 1:
            raise FilmError(f"a segment of {self.segment_frames} frames cannot be; give at least 1")

    @classmethod
    def of(cls, width: int, height: int, fps: Fraction) -> FilmFormat:
        """With segments of `SEGMENT_SECONDS`."""
        return cls(width, height, fps, math.ceil(SEGMENT_SECONDS * fps))


def exact_fps(value: float | str | Fraction) -> Fraction:
    """The frame rate meant: 25 -> 25, "30000/1001" as it stands, 29.97 and its kin -> n * 1000/1001.

    Raises SettingsError where it is no number from `SLOWEST` to `FASTEST`.
    """
    try:
        rate = Fraction(str(value))
    except (ValueError, ZeroDivisionError):
        raise SettingsError(f"fps is {value!r}; give a number such as 25, 29.97 or 30000/1001") from None
    if not SLOWEST <= rate <= FASTEST:
        raise SettingsError(f"fps {value} is out of range; give a rate from {SLOWEST} to {FASTEST}")
    whole = math.ceil(rate)
    broadcast = Fraction(whole * 1000, 1001)
    # 23.976, 29.97, 59.94: people write two or three places of them.
    return broadcast if rate != whole and abs(rate - broadcast) < Fraction(1, 200) else rate


def frames_in(duration: float, fps: Fraction) -> int:
    """Film frames for a sound of `duration` seconds: the picture covers all of it, by less than one frame."""
    return max(1, math.ceil(duration * fps - FRAME_TOLERANCE))


def segment_ranges(frames: int, segment_frames: int) -> list[range]:
    """Which frames of the film each segment holds."""
    return [range(first, min(first + segment_frames, frames)) for first in range(0, frames, segment_frames)]


def encoder_options() -> dict[str, str]:
    """libvpx-vp9 options. The packets depend on nothing else: not on the machine's cores or their load."""
    return {
        "crf": str(CRF),
        "b": "0",
        "deadline": "realtime",
        "cpu-used": str(SPEED),
        "lag-in-frames": "0",
        # With row-mt the packets differ by the number of threads (measured).
        "threads": "1",
        "row-mt": "0",
        "tile-columns": "0",
        "frame-parallel": "0",
    }
