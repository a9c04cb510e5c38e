"""The stages as tasks: load artifacts, call a stage, store artifacts. A task's message is a job's id and a number."""

from __future__ import annotations

import socket
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict
from itertools import chain
from pathlib import Path
from typing import Any

from pipeline.errors import OutputError
from pipeline.report import Report
from pipeline.scene import Scene
from pipeline.stages.film import write_film
from pipeline.stages.film_format import segment_ranges
from pipeline.stages.segments import Segment, encode_segment
from pipeline.stages.sound import read_sound
from pipeline.values import Appearance, KeyFrame, Motion, Portrait, Sound, Soundtrack, Source

from .budget import FleetForecast, decide_for_job, record_encoding, record_rendering
from .canvas import kind_of, settled_step
from .chunks import Chunk, Plan
from .errors import JobFailedError
from .job_view import JobView
from .step_task import step_task
from .work import NotReadyError, Work


@step_task
def sound(work: Work) -> dict[str, Any]:
    """Stage 1."""
    keys = work.keys
    if not work.has(keys.sound, keys.soundtrack):
        with work.report.timing("sound"):
            heard, soundtrack = read_sound(work.input(work.order.audio, work.order.audio_name))
        work.put(keys.soundtrack, soundtrack)
        work.put(keys.sound, heard)
    else:
        heard = work.get(keys.sound, Sound)
    work.progress("sound", 1, 1)
    return {"report": partial(work.report), "duration": heard.duration}


@step_task
def portrait(work: Work) -> dict[str, Any]:
    """Stage 2."""
    if not work.has(work.keys.portrait):
        picture = work.input(work.order.portrait, work.order.portrait_name)
        work.put(work.keys.portrait, work.studio.prepare_portrait(picture, work.settings, work.report))
    work.progress("portrait", 1, 1)
    return {"report": partial(work.report)}


@step_task
def motion(work: Work) -> dict[str, Any]:
    """Stage 3."""
    if not work.has(work.keys.motion):
        heard = work.get(work.keys.sound, Sound)
        made = work.studio.make_motion(
            heard, work.settings, work.report, lambda done, total: work.progress("motion", done, total)
        )
        work.put(work.keys.motion, made)
    else:
        work.progress("motion", 1, 1)
    return {"report": partial(work.report)}


@step_task
def appearance(work: Work) -> dict[str, Any]:
    """Stage 4, once a portrait: one worker makes it while the others wait."""

    work.studio.require_memory(work.settings.preset)

    def make() -> Appearance:
        return work.studio.make_appearance(work.get_kept(work.keys.portrait, Portrait), work.report)

    work.shared(work.keys.appearance, make)
    if not work.has(work.keys.source):
        work.put(work.keys.source, work.get_kept(work.keys.appearance, Appearance).source)
    work.progress("appearance", 1, 1)
    return {"report": partial(work.report)}


@step_task
def budget(work: Work) -> dict[str, Any]:
    """What a job with a deadline has time for; decided once, and heeded by every step from then on."""
    view, deadline = _view(work), work.order.deadline
    if view.budget is None and deadline is not None:

        def appearance() -> Appearance:
            return work.get_kept(work.keys.appearance, Appearance)

        picture = work.get_kept(work.keys.portrait, Portrait)
        forecast = FleetForecast(work, _scene(work, _source(work)), picture, appearance)
        decided = decide_for_job(work, forecast, deadline).to_json()
        work.patiently(lambda: work.fleet.jobs.decide(work.order.job, decided))
    return {"report": partial(work.report)}


@step_task
def plan(work: Work) -> dict[str, Any]:
    """Stage 6, and how the work is divided."""
    scene = _scene(work, _source(work))
    with work.report.timing("key frames"):
        numbers = scene.key_frame_numbers()
    picture = work.get_kept(work.keys.portrait, Portrait)
    film = work.studio.film_format(work.studio.compositor(picture, work.settings), work.settings.fps)
    made = Plan.divide(numbers, scene.count, film.segment_frames, scene.chunk)
    work.put(work.keys.plan, made)
    return {"report": partial(work.report), **made.outline()}


@step_task
def render(work: Work) -> dict[str, Any]:
    """Stages 7 and 8 for one chunk of key frames, as if the chunk before ended well."""
    number, made = work.number, work.get_kept(work.keys.plan, Plan)
    scene = _scene(work, work.get_kept(work.keys.appearance, Appearance))
    picture = work.get_kept(work.keys.portrait, Portrait)
    last = None
    if number:
        last = scene.assumed(made.chunk(number - 1).tolist(), work.report)
    return _render(work, scene, picture, made, last, work.keys.frames(number))


@step_task
def settle(work: Work) -> dict[str, Any]:
    """The same, from the chunk before as it really ended."""
    made, view = work.get_kept(work.keys.plan, Plan), _view(work)
    before = work.get(_frames_key(work, view, work.number - 1), Chunk)
    scene = _scene(work, work.get_kept(work.keys.appearance, Appearance))
    picture = work.get_kept(work.keys.portrait, Portrait)
    return _render(work, scene, picture, made, before.last, work.keys.frames(work.number, settled=True))


def _render(work: Work, scene: Scene, picture: Portrait, made: Plan, last: KeyFrame | None, key: str) -> dict[str, Any]:
    work.studio.require_memory(work.settings.preset)
    numbers = made.chunk(work.number).tolist()
    part, total = str(work.number), len(made.numbers)
    if work.has(key):
        chunk = work.get(key, Chunk)
    else:
        frames, ticks = [], []
        for frame in scene.render(numbers, picture.pixels, work.report, last=last):
            frames.append(frame)
            ticks.append(time.monotonic())
            work.progress("frames", len(frames), total, part)
        chunk = Chunk.of(frames, work.report.repairs)
        work.put(key, chunk)
        record_rendering(work, scene, ticks)
    work.progress("frames", len(numbers), total, part)
    return {"report": partial(work.report), "clean": chunk.clean, "repairs": [asdict(r) for r in chunk.repairs]}


@step_task
def encode(work: Work) -> dict[str, Any]:
    """Stages 9, 10 and the first half of 11 for one segment; then frames that nobody needs any more go."""
    key = work.keys.segment(work.number)
    made = work.get_kept(work.keys.plan, Plan)
    picture = work.get_kept(work.keys.portrait, Portrait)
    compositor = work.studio.compositor(picture, work.settings)
    film = work.studio.film_format(compositor, work.settings.fps)
    part = segment_ranges(made.frames, film.segment_frames)[work.number]
    if not work.has(key):
        scene, view = _scene(work, _source(work)), _view(work)
        first, last = made.segments[work.number]
        stored = [_frames_key(work, view, chunk) for chunk in range(first, last + 1)]
        work.need(*stored)
        chunks = [work.get(name, Chunk) for name in stored]
        needed = made.keys_around(part)

        def pictures() -> Iterator[Any]:
            keys = (frame for frame in chain.from_iterable(c.frames for c in chunks) if frame.index in needed)
            for frame, image in scene.between(keys, work.report):
                if frame in part:
                    work.lease.check()
                    with work.report.timing("compositing"):
                        yield compositor.compose(image)

        with work.report.timing("film"):
            segment = encode_segment(pictures(), film)
        work.put(key, segment)
        record_encoding(work, film, max(needed) - min(needed) + 1 - len(needed), len(part))
    work.progress("film", 1, len(made.segments), str(work.number))
    work.patiently(lambda: work.fleet.drop_frames(_view(work)))
    return {"report": partial(work.report)}


@step_task
def mux(work: Work) -> dict[str, Any]:
    """The second half of stage 11: segments and the original sound become the film."""
    made = work.get_kept(work.keys.plan, Plan)
    picture = work.get_kept(work.keys.portrait, Portrait)
    film = work.studio.film_format(work.studio.compositor(picture, work.settings), work.settings.fps)
    report = Report.begin(work.studio.pack, work.settings, work.studio.options.thread_count)
    soundtrack = work.get(work.keys.soundtrack, Soundtrack)
    work.need(*(work.keys.segment(number) for number in range(len(made.segments))))

    def segments() -> Iterator[Segment]:
        for number in range(len(made.segments)):
            work.lease.check()
            yield work.get(work.keys.segment(number), Segment)

    with tempfile.TemporaryDirectory(prefix="talkreel-") as folder:
        path = Path(folder) / "film.webm"
        try:
            with report.timing("mux"):
                facts = write_film(path, segments(), soundtrack, film, report.film_metadata())
        except OutputError as error:
            raise JobFailedError(work.order.job, "mux", f"on {socket.gethostname()}, {error}") from error
        job, films = work.order.job, work.fleet.films
        work.lease.check()
        film_address = work.patiently(lambda: films.put(job, work.keys.film, path))
    work.studio.describe_portrait(picture, report)
    report.describe_film(film, facts)
    report.frames.plan(made.frames, len(made.numbers))
    work.patiently(lambda: work.fleet.store_report(work.order, report))
    return {"film": film_address, "bytes": facts.size}


def _view(work: Work) -> JobView:
    return work.patiently(lambda: work.fleet.jobs.view(work.order.job))


def _source(work: Work) -> Appearance:
    """An appearance without features: enough to know where keypoints go, not to render."""
    return Appearance({}, work.get_kept(work.keys.source, Source))


def _scene(work: Work, appearance: Appearance) -> Scene:
    heard = _view(work).result("sound")
    if heard is None:
        raise NotReadyError
    return work.studio.scene(appearance, work.get_kept(work.keys.motion, Motion), heard["duration"], work.settings)


def _frames_key(work: Work, view: JobView, chunk: int) -> str:
    """Where the frames of a chunk stand. Raises NotReadyError: they are being made again."""
    step = settled_step(view, chunk)
    if step is None:
        raise NotReadyError
    return work.keys.frames(chunk, settled=kind_of(step) == "settle")


def partial(report: Report) -> dict[str, Any]:
    """A step's share of the job's report."""
    return {name: asdict(stage) for name, stage in report.stages.items()}
