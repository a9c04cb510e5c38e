"""What the stages need to know of a pack, read once from its manifest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import PackError
from .pack import Pack
from .section import Section

F32 = NDArray[np.float32]

GREATEST_SMOOTHING = 0.999
"""At 25 frames a second a time constant of 40 s; the reference has 0.99."""


@dataclass(frozen=True)
class SpeechSpec:
    """The speech encoder's and the denoiser's frame (JoyVASA).

    `encoder`, `denoiser`: names of the two models.
    `reflect_pads`: samples of reflection on both sides of a window, one padding after the other.
    `overlap_frames`: how many frames a window shares with the next, in which the one fades into the other
    (0, as published: windows follow each other).
    `start_audio` [P, A], `start_motion` [P, V]: the context of the first window; `null_audio` [1, A].
    `alpha`, `alpha_bar`: [steps + 1] float32, row 0 is step 0.
    """

    encoder: str
    denoiser: str
    sample_rate: int
    fps: float
    window_frames: int
    previous_frames: int
    reflect_pads: tuple[int, ...]
    motion_size: int
    audio_size: int
    guidance: float
    start_audio: F32
    start_motion: F32
    null_audio: F32
    alpha: F32
    alpha_bar: F32
    overlap_frames: int = 0

    @property
    def hop_frames(self) -> int:
        """How many frames lie between the beginnings of two windows."""
        return self.window_frames - self.overlap_frames

    @property
    def steps(self) -> int:
        return len(self.alpha) - 1

    @property
    def window_samples(self) -> int:
        return round(self.window_frames * self.sample_rate / self.fps)

    @property
    def hop_samples(self) -> int:
        return round(self.hop_frames * self.sample_rate / self.fps)

    @classmethod
    def read(cls, pack: Pack) -> SpeechSpec:
        """`overlap_frames` may be left out.

        Raises PackError: a field is missing or out of its range, or a table's file has another length."""
        s = pack.section("speech")
        frames, audio, motion = s.integer("previous_frames"), s.integer("audio_size"), s.integer("motion_size")
        overlap = s.integer("overlap_frames") if "overlap_frames" in s else 0
        if not 0 < frames <= (window := s.size("window_frames")):
            raise s.fail("previous_frames", f"a whole number from 1 to {window}")
        room = window - frames
        if not 0 <= overlap <= room:
            raise s.fail("overlap_frames", f"a whole number from 0 to {room}")
        shapes = {"start_audio": (frames, audio), "start_motion": (frames, motion), "null_audio": (1, audio)}
        tables, offset = {}, 0
        values = pack.floats(s.text("conditioning"))
        for name, shape in shapes.items():
            size = shape[0] * shape[1]
            if offset + size > len(values):
                raise s.fail("conditioning", f"a file with {sum(a * b for a, b in shapes.values())} floats")
            tables[name] = values[offset : offset + size].reshape(shape)
            offset += size
        schedule = pack.floats(s.text("schedule"))
        if len(schedule) != 2 * (s.integer("steps") + 1):
            raise s.fail("schedule", "a file with (steps + 1) x 2 floats")
        return s.record(
            cls,
            alpha=schedule.reshape(-1, 2)[:, 0].copy(),
            alpha_bar=schedule.reshape(-1, 2)[:, 1].copy(),
            overlap_frames=overlap,
            **tables,
        )


@dataclass(frozen=True)
class MotionPart:
    """Columns start..stop of the motion vector; decoded value = v * gain + offset."""

    start: int
    stop: int
    gain: F32
    offset: F32

    def decode(self, motion: F32) -> F32:
        """[M, V] -> [M, stop - start]."""
        return motion[:, self.start : self.stop] * self.gain + self.offset


@dataclass(frozen=True)
class MotionLayout:
    """What stands where in the motion vector (JoyVASA's motion template).

    `smoothing`: the pack's default of `stages.smoothing`, 0 = none.
    """

    expression: MotionPart
    scale: MotionPart
    translation: MotionPart
    pitch: MotionPart
    yaw: MotionPart
    roll: MotionPart
    smoothing: float = 0.0

    @classmethod
    def read(cls, pack: Pack) -> MotionLayout:
        """A part has `columns` [start, stop] and either `mean` and `std` or `min` and `max`: numbers, lists,
        or names of lists in the JSON file `template` of the pack. `smoothing` may be left out."""
        s = pack.section("motion")
        template = pack.json(s.text("template")) if "template" in s else {}
        smoothing = s.number("smoothing") if "smoothing" in s else 0.0
        if not 0 <= smoothing <= GREATEST_SMOOTHING:
            raise s.fail("smoothing", f"a number from 0 to {GREATEST_SMOOTHING}")
        parts = {name: _part(part, template) for name, part in s.sections("parts").items()}
        return cls(**parts, smoothing=smoothing)


def _part(section: Section, template: dict[str, Any]) -> MotionPart:
    start, stop = section.integers("columns")

    def values(name: str) -> F32:
        value = section.data.get(name)
        value = template.get(value) if isinstance(value, str) else value
        array = np.asarray(value, np.float32).reshape(-1)
        if value is None or len(array) not in (1, stop - start):
            raise section.fail(name, f"a number, {stop - start} numbers, or the name of such in the template")
        return np.broadcast_to(array, (stop - start,))

    if "mean" in section:
        return MotionPart(start, stop, values("std"), values("mean"))
    low = values("min")
    return MotionPart(start, stop, values("max") - low, low)


@dataclass(frozen=True)
class DrivingSpec:
    """How motion becomes driving keypoints (LivePortrait).

    A part's rule: "relative" (to the film's first frame, added to the source's), "offset" (added to the
    source's as it is) or "absolute" (replaces the source's).
    `lip_points` follow `lip_rule` instead of the expression's.
    `expression_frame`: "camera" adds the expression after the head's rotation (LivePortrait), "head"
    turns it with the head: x = scale * ((kp + exp) @ R).
    """

    expression_frame: str
    rotation: str
    expression: str
    scale: str
    translation: str
    lip_points: tuple[int, ...]
    lip_rule: str

    @classmethod
    def read(cls, pack: Pack) -> DrivingSpec:
        s = pack.section("driving")
        rules = {
            name: s.choice(name, "relative", "offset", "absolute")
            for name in ("rotation", "expression", "scale", "translation", "lip_rule")
        }
        return s.record(cls, expression_frame=s.choice("expression_frame", "camera", "head"), **rules)

    def check(self, keypoints: int) -> None:
        """Raises PackError: a lip point is not among the keypoints."""
        if any(not 0 <= point < keypoints for point in self.lip_points):
            raise PackError(f"driving.lip_points must be below {keypoints}; the pack's manifest is damaged")


@dataclass(frozen=True)
class PoseBins:
    """Head pose from bins: degrees = step * sum(i * softmax(logits)_i) + offset (LivePortrait)."""

    step: float
    offset: float


@dataclass(frozen=True)
class SourceSpec:
    """Which model finds the source keypoints, and from what.

    `model`: its name; `input`: "landmarks" [1, 478, 3] or "image" [1, 3, S, S].
    `bins`: how its pose outputs become degrees, or None where it gives `rotation` itself.
    """

    model: str
    input: str
    keypoints: int
    bins: PoseBins | None

    @classmethod
    def read(cls, pack: Pack) -> SourceSpec:
        s = pack.section("source")
        bins = s.optional("pose_bins")
        return s.record(
            cls, input=s.choice("input", "landmarks", "image"), bins=bins.record(PoseBins) if bins else None
        )


@dataclass(frozen=True)
class KeyFrameSpec:
    """Which frames the generator renders (after timeline-studio).

    `fps`: default rate. `least_fps`: the lowest that a film short of time gets; 0 = one in 25 frames.
    `extra_percentile`: extras where the mouth's speed is above this percentile of the film's. `extra_gap`: least
    distance of an extra to any other key frame, seconds. `greatest_miss`: a frame whose mouth points lie farther
    from those of both key frames around it, on average in crop units, is rendered itself. `chunk`: how many make
    a fair piece of work for one worker.
    """

    fps: float
    extra_percentile: float
    extra_gap: float
    greatest_miss: float
    chunk: int
    least_fps: float = 0.0

    @classmethod
    def read(cls, pack: Pack) -> KeyFrameSpec:
        s = pack.section("key_frames")
        least = s.number("least_fps") if "least_fps" in s else 0.0
        return s.record(cls, extra_gap=s.number("extra_gap_seconds"), least_fps=least)


@dataclass(frozen=True)
class CheckSpec:
    """Thresholds of the frame checks (after timeline-studio); pictures are 0..1.

    `points`: the distance is taken over points x points. `samples`: at most so many strided values for
    variance and extremes.
    """

    points: int
    samples: int
    least_variance: float
    extreme: float
    first_jump: float
    jump: float

    @classmethod
    def read(cls, pack: Pack) -> CheckSpec:
        return pack.section("checks").record(cls)
