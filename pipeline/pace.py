"""What frames take on this machine, measured on the film that is to be made."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from time import perf_counter

from .budget import Decision, Forecast, decide, ways
from .deadline import Deadline
from .report import Report
from .runtime.options import cores_allowed
from .scene import Scene
from .settings import Settings
from .stages.interpolation import between
from .stages.segments import encode_segment
from .values import KeyFrame, Portrait

LONG_ENOUGH = 0.5
"""Seconds after which a measurement of key frames is good enough; one frame at least."""

MOST_FRAMES = 16
"""Key frames that are measured at most."""

ENCODED = 4
"""Film frames that are measured; the least that a segment may hold."""

MEGA = 1e6


@dataclass(frozen=True)
class Pace:
    """Seconds. `key_frame`: of one, in this process. `between`: a million pixels of a frame between key frames.
    `film`: a million pixels of film, composed and encoded."""

    key_frame: float
    between: float
    film: float


def measured_pace(scene: Scene, portrait: Portrait, check: Callable[[], None]) -> Pace:
    """Make a few frames and throw them away.

    The generator's first run is left out: it opens the session and takes longer than all others.

    Args:
        check: called between frames; what it raises ends the measurement.
    """
    together = scene.frames_at_a_time * scene.batch
    first = _rendered(scene, portrait, 1, check)[0]
    count, seconds, begun = 0, 0.0, perf_counter()
    while count < MOST_FRAMES and seconds < LONG_ENOUGH:
        count += len(_rendered(scene, portrait, together, check))
        seconds = perf_counter() - begun
    return Pace(seconds / count, _between(first), _film(scene, portrait, first))


def _rendered(scene: Scene, portrait: Portrait, frames: int, check: Callable[[], None]) -> list[KeyFrame]:
    made = []
    for frame in scene.render(range(min(frames, scene.count)), portrait.pixels, Report()):
        check()
        made.append(frame)
    return made


def _between(key: KeyFrame) -> float:
    """Of the frame between this key frame and itself: how far keypoints move makes no difference."""
    begun = perf_counter()
    between(key, replace(key, index=key.index + 2), key.index + 1, key.keypoints)
    return (perf_counter() - begun) * MEGA / key.image[..., 0].size


def _film(scene: Scene, portrait: Portrait, key: KeyFrame) -> float:
    compositor = scene.studio.compositor(portrait, scene.settings)
    film = scene.studio.film_format(compositor, scene.settings.fps)
    begun = perf_counter()
    encode_segment((compositor.compose(key.image) for _ in range(ENCODED)), film)
    return (perf_counter() - begun) / ENCODED * MEGA / (film.width * film.height)


class _Here:
    """Forecasts for a film that this process makes alone: the generator has the cores, the rest shares them with it
    in one thread for frames in between and one for the film."""

    def __init__(self, scene: Scene, portrait: Portrait, deadline: Deadline) -> None:
        self._scene, self._portrait, self._deadline = scene, portrait, deadline
        self._paces: dict[str, Pace] = {}

    def __call__(self, way: Settings) -> Forecast:
        scene = self._scene
        pace = self._pace(way)
        manifest = scene.studio.pack.manifest
        keys = len(scene.key_frame_numbers(way.keyframe_fps))
        width, height = scene.studio.compositor(self._portrait, way).output_size
        generator = keys * pace.key_frame
        fill = (scene.count - keys) * pace.between * manifest.preset(way.preset).size ** 2 / MEGA
        film = scene.count * pace.film * width * height / MEGA
        seconds = max(fill, film, generator + (fill + film) / cores_allowed())
        return Forecast(way, keys, pace.key_frame, 1, seconds, seconds)

    def _pace(self, way: Settings) -> Pace:
        if way.preset not in self._paces:
            trial = replace(self._scene, settings=way)
            self._paces[way.preset] = measured_pace(trial, self._portrait, lambda: self._deadline.check("a trial"))
        return self._paces[way.preset]


def decide_here(scene: Scene, portrait: Portrait, deadline: Deadline) -> Decision:
    """How a film is made in this process that must be done by the deadline.

    Raises:
        OutOfTimeError: it cannot be.
    """
    spec = scene.studio.key_frames
    choices = ways(scene.settings, scene.studio.pack.manifest.presets, spec)
    return decide(choices, _Here(scene, portrait, deadline), deadline.left, spec)
