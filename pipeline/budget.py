"""How a film is made that must be ready in time: as asked, else with fewer key frames, else in a smaller preset.

Nothing here measures or waits. Whoever makes the film says what it would take (`Forecast`), from the seconds that
frames were measured to take on the machines at work; the first way that fits in the time left is taken, once, before
the film's first frame. So the film is the one that the lowered settings make without a deadline.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from .errors import OutOfTimeError
from .packs.manifest import Preset
from .packs.specs import KeyFrameSpec
from .settings import Settings

APART = (2, 3, 4, 6, 8, 12, 17, 25)
"""Frames from one key frame to the next, a step at a time; timeline-studio has one in 25 at least."""

LOWEST_FPS = 0.1
"""The lowest key-frame rate that settings take."""

RESERVE = 0.15
"""Share of its forecast that a film must have to spare: frames take longer now and then, and so does the network."""


@dataclass(frozen=True)
class Forecast:
    """What the rest of a film would take.

    `key_frames`: to be rendered. `key_frame`: seconds of one, on one of `processes`. `seconds`: of all of it, with
    what else is to be done meanwhile. `least`: the same if nobody else wanted the machines.
    """

    settings: Settings
    key_frames: int
    key_frame: float
    processes: int
    seconds: float
    least: float

    def figures(self) -> str:
        """What it was reckoned from."""
        by = f" by {self.processes} processes" if self.processes > 1 else ""
        return f"{self.key_frames} key frames of {self.key_frame:.3g} s{by}"

    def to_json(self) -> dict[str, Any]:
        return {
            "preset": self.settings.preset,
            "keyframe_fps": self.settings.keyframe_fps,
            "key_frames": self.key_frames,
            "seconds_a_key_frame": round(self.key_frame, 4),
            "processes": self.processes,
            "seconds": round(self.seconds, 2),
        }


@dataclass(frozen=True)
class Decision:
    """How the film is made. `left`: seconds that there were. `tried`: forecasts, as asked first; `chosen` is one."""

    chosen: Forecast
    tried: tuple[Forecast, ...]
    left: float
    pack_fps: float

    @property
    def settings(self) -> Settings:
        return self.chosen.settings

    @property
    def lowered(self) -> dict[str, list[Any]]:
        """What was lowered, by setting: as asked, and as made. A key-frame rate not asked for is the pack's."""
        asked, made = self.tried[0].settings, self.settings
        changes: dict[str, list[Any]] = {}
        if made.keyframe_fps != asked.keyframe_fps:
            changes["keyframe_fps"] = [self._rate(asked), self._rate(made)]
        if made.preset != asked.preset:
            changes["preset"] = [asked.preset, made.preset]
        return changes

    def note(self) -> str:
        """What was lowered and why, in one line; "" where nothing was."""
        words = []
        if "keyframe_fps" in self.lowered:
            words.append("key frames from {:.3g} to {:.3g} a second".format(*self.lowered["keyframe_fps"]))
        if "preset" in self.lowered:
            words.append("preset from {} to {}".format(*self.lowered["preset"]))
        if not words:
            return ""
        asked = self.tried[0]
        return (
            f"lowered to be done in time: {', '.join(words)}; as asked it would have taken about "
            f"{asked.seconds:.1f} s ({asked.figures()}), {self.left:.1f} s were left"
        )

    def to_json(self) -> dict[str, Any]:
        return {
            "left": round(self.left, 2),
            "lowered": self.lowered,
            "note": self.note(),
            "forecasts": [forecast.to_json() for forecast in self.tried],
        }

    def _rate(self, settings: Settings) -> float:
        return round(min(settings.keyframe_fps or self.pack_fps, float(settings.fps)), 4)


def ways(asked: Settings, presets: Mapping[str, Preset], spec: KeyFrameSpec) -> Iterator[Settings]:
    """The ways in which a film may be made, as asked first: lower key-frame rates, then the same with each smaller
    preset. Rates end at the pack's lowest; one that was asked for and is lower still stays as it is."""
    smaller = [name for name, preset in presets.items() if preset.size < presets[asked.preset].size]
    rates = list(_rates(asked, spec))
    for preset in (asked.preset, *sorted(smaller, key=lambda name: presets[name].size, reverse=True)):
        yield replace(asked, preset=preset)
        for rate in rates:
            yield replace(asked, preset=preset, keyframe_fps=rate)


def _rates(asked: Settings, spec: KeyFrameSpec) -> Iterator[float]:
    fps = float(asked.fps)
    now = min(asked.keyframe_fps or spec.fps, fps)
    floor = max(spec.least_fps, fps / APART[-1], LOWEST_FPS)
    rates = {fps / frames for frames in APART} | {floor}
    yield from sorted((rate for rate in rates if floor <= rate < now), reverse=True)


def decide(
    ways: Iterable[Settings], forecast: Callable[[Settings], Forecast], left: Callable[[], float], spec: KeyFrameSpec
) -> Decision:
    """The first way whose forecast, with the reserve, fits in the time left. Where none does, the quickest is tried
    all the same, unless it could not be done even if nobody else wanted the machines.

    Args:
        forecast: of one way. It may take time to measure, so it is asked only for as long as no way fits.
        left: seconds until the deadline, now.

    Raises:
        OutOfTimeError: it cannot be done; says what it would take.
    """
    tried: list[Forecast] = []
    for way in ways:
        tried.append(forecast(way))
        if tried[-1].seconds * (1 + RESERVE) <= left():
            return Decision(tried[-1], tuple(tried), left(), spec.fps)
    quickest = min(tried, key=lambda item: (item.seconds, item.least))
    decision = Decision(quickest, tuple(tried), left(), spec.fps)
    if quickest.least > decision.left:
        rate = decision._rate(quickest.settings)
        raise OutOfTimeError(
            f"even with preset {quickest.settings.preset} and {rate:.3g} key frames a second it would take about "
            f"{quickest.least:.1f} s ({quickest.figures()}), and {max(0.0, decision.left):.1f} s are left"
        )
    return decision
