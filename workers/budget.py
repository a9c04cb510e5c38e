"""How a job's film is made that must be done by a deadline: what it would take on the machines at work.

A figure that nobody has measured yet is measured here, by the render worker that decides: a few frames are made and
thrown away. Figures of other kinds of machine that have none are taken to be the slowest known.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

from pipeline.budget import Decision, Forecast, decide, ways
from pipeline.pace import MEGA, measured_pace
from pipeline.scene import Scene
from pipeline.settings import Settings
from pipeline.stages.film_format import FilmFormat, segment_ranges
from pipeline.values import Appearance, Portrait

from .config import PRIORITIES
from .paces import Figure, by_machine, machine_kind
from .work import Work


def makespan(tasks: Iterable[float], speeds: Sequence[float]) -> float:
    """Seconds until all tasks are done when each goes to the process that is free first.

    Args:
        tasks: their sizes, in order. speeds: of each process, seconds a unit of size.
    """
    free = [(0.0, number) for number in range(len(speeds))]
    ends = [0.0]
    for size in tasks:
        at, number = heapq.heappop(free)
        ends.append(at + size * speeds[number])
        heapq.heappush(free, (ends[-1], number))
    return max(ends)


@dataclass
class FleetForecast:
    """Forecasts for a job's film.

    Args:
        scene: the film as asked; its appearance needs no features. appearance: the same with them, for measuring.
    """

    work: Work
    scene: Scene
    portrait: Portrait
    appearance: Callable[[], Appearance]
    _figures: list[Figure] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._paces = self.work.fleet.paces
        self._known = (self.work.order.pack_identity, self.work.order.code)
        self._present = self.work.patiently(self._paces.present)
        self._rivals = self.work.patiently(self._count_rivals)
        self._look()

    def _look(self) -> None:
        self._figures = self.work.patiently(lambda: self._paces.figures(*self._known))

    def __call__(self, way: Settings) -> Forecast:
        if not all(by_machine(self._figures, *what) for what in (("key frame", way.preset), ("between",), ("film",))):
            self._measure(way)
        scene, studio = self.scene, self.scene.studio
        keys = len(scene.key_frame_numbers(way.keyframe_fps))
        made = replace(scene, settings=way)
        # A chunk but the first renders the last batch before it too.
        chunks = [min(made.chunk, keys - first) + (made.batch if first else 0) for first in range(0, keys, made.chunk)]
        rendering = self._speeds("render", by_machine(self._figures, "key frame", way.preset))
        compositor = studio.compositor(self.portrait, way)
        width, height = compositor.output_size
        fill = (scene.count - keys) * studio.pack.manifest.preset(way.preset).size ** 2 / MEGA
        film = scene.count * width * height / MEGA
        segments = segment_ranges(scene.count, studio.film_format(compositor, way.fps).segment_frames)
        shares = [len(part) / scene.count for part in segments]
        filling, filming = (self._speeds("encode", by_machine(self._figures, work)) for work in ("between", "film"))
        encoding = [fill * each + film * other for each, other in zip(filling, filming, strict=True)]
        # Both in full: the last segment waits for the last chunk, and the same processes may do both.
        least = makespan(chunks, rendering) + makespan(shares, encoding)
        mean = len(rendering) / sum(1 / seconds for seconds in rendering)
        return Forecast(way, keys, mean, len(rendering), least * (1 + self._rivals), least)

    def _speeds(self, queue: str, known: dict[str, float]) -> list[float]:
        """Seconds of each process that serves a queue; this one alone where none is known to be there."""
        here = [(worker.machine, worker.processes) for worker in self._present if queue in worker.queues]
        slowest = max(known.values())
        return [known.get(machine, slowest) for machine, count in here or [(machine_kind(), 1)] for _ in range(count)]

    def _measure(self, way: Settings) -> None:
        scene = replace(self.scene, settings=way, appearance=self.appearance())
        pace = measured_pace(scene, self.portrait, self.work.lease.check)
        record_key_frames(self.work, scene, pace.key_frame)
        for work, seconds in (("between", pace.between), ("film", pace.film)):
            if not by_machine(self._figures, work):
                record(self.work, work, seconds)
        self._look()

    def _count_rivals(self) -> int:
        """Other jobs at work that are at least as urgent: each gets its turn in the queues."""
        mine = self.work.order
        orders = self.work.fleet.jobs.running_orders()
        return sum(o.job != mine.job and PRIORITIES[o.priority] <= PRIORITIES[mine.priority] for o in orders)


def record(work: Work, what: str, seconds: float, preset: str = "", rung: str = "") -> None:
    """Let the fleet know what this took here."""
    paces, order = work.fleet.paces, work.order
    work.patiently(lambda: paces.record(order.pack_identity, order.code, what, seconds, preset=preset, rung=rung))


def record_key_frames(work: Work, scene: Scene, seconds: float) -> None:
    """The same of a key frame."""
    preset = scene.settings.preset
    generator = scene.studio.models.get(scene.studio.pack.manifest.preset(preset).generator)
    record(work, "key frame", seconds, preset, str(generator.place.rung))


def record_rendering(work: Work, scene: Scene, ticks: Sequence[float]) -> None:
    """The same of a chunk: `ticks` are the times at which its key frames were ready. The first ones are left out, as
    they may have waited for a session."""
    first = scene.frames_at_a_time * scene.batch - 1
    if len(ticks) > first + 1:
        record_key_frames(work, scene, (ticks[-1] - ticks[first]) / (len(ticks) - first - 1))


def record_encoding(work: Work, film: FilmFormat, filled: int, frames: int) -> None:
    """The same of a segment of so many frames, for which `filled` were made between key frames."""
    stages, size = work.report.stages, work.studio.pack.manifest.preset(work.settings.preset).size
    filling = stages["interpolation"].seconds if filled else 0.0
    if filled:
        record(work, "between", filling * MEGA / filled / size**2)
    record(work, "film", (stages["film"].seconds - filling) * MEGA / frames / (film.width * film.height))


def decide_for_job(work: Work, forecast: FleetForecast, deadline: float) -> Decision:
    """How the film is made. `deadline`: Redis time.

    Raises:
        OutOfTimeError: it cannot be done.
    """
    scene = forecast.scene
    spec = scene.studio.key_frames
    choices = ways(scene.settings, scene.studio.pack.manifest.presets, spec)

    def left() -> float:
        return deadline - work.patiently(work.fleet.jobs.now)

    return decide(choices, forecast, left, spec)
