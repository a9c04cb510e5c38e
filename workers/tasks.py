"""The stages as tasks: load artifacts, call a stage, store artifacts. A task's message is a job's id and a number."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from dataclasses import asdict
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from pipeline.packs.store import open_pack
from pipeline.report import Report
from pipeline.runtime.session import RuntimeOptions
from pipeline.stages.film import write_film
from pipeline.stages.film_format import segment_ranges
from pipeline.stages.generator import generate, to_pixels
from pipeline.stages.segments import Segment, encode_segment
from pipeline.stages.sound import read_sound
from pipeline.studio import Scene, Studio
from pipeline.values import Appearance, KeyFrame, Motion, Portrait, Sound, Soundtrack

from .app import app
from .canvas import settled_step
from .chunks import Chunk, Plan
from .connections import Connections
from .execution import Studios, Work, run_step
from .fleet import Fleet


@cache
def fleet() -> Fleet:
    """This process's connections; made after the fork."""
    return Fleet(Connections.read(), app)


@cache
def studios() -> Studios:
    """This process's models; made after the fork, one thread each unless the worker says otherwise."""
    from .config import threads_per_process

    options = RuntimeOptions(threads=threads_per_process())
    return Studios(lambda pack: Studio(open_pack(pack), options))


def step_task(work: Callable[[Work], dict[str, Any]]) -> Callable[[Work], dict[str, Any]]:
    """Make a function of a step's work a Celery task: talkreel.NAME(job) or talkreel.NAME(job, number)."""
    name = work.__name__

    @app.task(name=f"talkreel.{name}")  # type: ignore[untyped-decorator]
    def task(job: str, number: int | None = None) -> str:
        step = name if number is None else f"{name}:{number}"
        return run_step(fleet(), job, step, studios().of, work)

    return work


@step_task
def sound(work: Work) -> dict[str, Any]:
    """Stage 1."""
    keys = work.keys
    if not work.has(keys.sound, keys.soundtrack):
        with work.report.timing("sound"):
            heard, soundtrack = read_sound(work.input(work.order.audio, work.order.audio_name))
        work.put(keys.sound, heard)
        work.put(keys.soundtrack, soundtrack)
    work.progress("sound", 1, 1)
    return {"report": partial(work.report)}


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
    return {"report": partial(work.report)}


@step_task
def appearance(work: Work) -> dict[str, Any]:
    """Stage 4, once a portrait: one worker makes it while the others wait."""
    if work.claim(work.keys.appearance):
        picture = work.get(work.keys.portrait, Portrait)
        work.put(work.keys.appearance, work.studio.make_appearance(picture, work.report))
    work.share(work.keys.appearance)
    work.progress("appearance", 1, 1)
    return {"report": partial(work.report)}


@step_task
def plan(work: Work) -> dict[str, Any]:
    """Stage 6, and how the work is divided."""
    scene = _scene(work)
    with work.report.timing("key frames"):
        numbers = scene.key_frame_numbers()
    picture = work.get(work.keys.portrait, Portrait)
    film = work.studio.film_format(work.studio.compositor(picture, work.settings), work.settings.fps)
    made = Plan.divide(numbers, scene.count, film.segment_frames, work.studio.key_frames.chunk)
    work.put(work.keys.plan, made)
    return {"report": partial(work.report), **made.outline()}


@step_task
def render(work: Work) -> dict[str, Any]:
    """Stages 7 and 8 for one chunk of key frames, as if the chunk before ended well."""
    number, made = work.number, work.get(work.keys.plan, Plan)
    scene, picture = _scene(work), work.get(work.keys.portrait, Portrait)
    last = None
    if number:
        before = int(made.chunk(number - 1)[-1])
        points = scene.keypoints(before)
        image = generate(scene.appearance, points, scene.generators[0])
        last = KeyFrame(before, to_pixels(np.nan_to_num(image)), points)
    return _render(work, scene, picture, made, last, work.keys.frames(number))


@step_task
def settle(work: Work) -> dict[str, Any]:
    """The same, from the chunk before as it really ended."""
    made, view = work.get(work.keys.plan, Plan), work.fleet.jobs.view(work.order.job)
    before = work.get(_frames_key(work, settled_step(view, work.number - 1)), Chunk)
    scene, picture = _scene(work), work.get(work.keys.portrait, Portrait)
    return _render(work, scene, picture, made, before.last, work.keys.frames(work.number, settled=True))


def _render(work: Work, scene: Scene, picture: Portrait, made: Plan, last: KeyFrame | None, key: str) -> dict[str, Any]:
    numbers = made.chunk(work.number).tolist()
    if work.has(key):
        chunk = work.get(key, Chunk)
    else:
        frames = []
        for frame in scene.render(numbers, picture.pixels, work.report, last=last):
            work.lease.check()
            frames.append(frame)
        chunk = Chunk.of(frames, work.report.repairs)
        work.put(key, chunk)
    done = work.fleet.jobs.count(work.order.job, f"{work.step}", len(numbers))
    total = work.fleet.jobs.count(work.order.job, "frames", len(numbers)) if done == len(numbers) else 0
    if total:
        work.progress("frames", min(total, len(made.numbers)), len(made.numbers))
    return {"report": partial(work.report), "clean": chunk.clean, "repairs": [asdict(r) for r in chunk.repairs]}


@step_task
def encode(work: Work) -> dict[str, Any]:
    """Stages 9, 10 and the first half of 11 for one segment; then frames that nobody needs any more go."""
    key = work.keys.segment(work.number)
    made = work.get(work.keys.plan, Plan)
    picture = work.get(work.keys.portrait, Portrait)
    compositor = work.studio.compositor(picture, work.settings)
    film = work.studio.film_format(compositor, work.settings.fps)
    part = segment_ranges(made.frames, film.segment_frames)[work.number]
    if not work.has(key):
        scene, view = _scene(work), work.fleet.jobs.view(work.order.job)
        first, last = made.segments[work.number]
        chunks = [work.get(_frames_key(work, settled_step(view, k)), Chunk) for k in range(first, last + 1)]
        needed = made.keys_around(part)

        def pictures() -> Iterator[Any]:
            keys = (frame for frame in chain.from_iterable(c.frames for c in chunks) if frame.index in needed)
            for frame, image in scene.between(keys):
                if frame in part:
                    work.lease.check()
                    with work.report.timing("compositing"):
                        yield compositor.compose(image)

        with work.report.timing("film"):
            segment = encode_segment(pictures(), film)
        work.put(key, segment)
    work.progress("film", work.number + 1, len(made.segments))
    return {"report": partial(work.report)}


@step_task
def mux(work: Work) -> dict[str, Any]:
    """The second half of stage 11: segments and the original sound become the film."""
    made = work.get(work.keys.plan, Plan)
    picture = work.get(work.keys.portrait, Portrait)
    film = work.studio.film_format(work.studio.compositor(picture, work.settings), work.settings.fps)
    report = Report.begin(work.studio.pack, work.settings, work.studio.options.thread_count)
    soundtrack = work.get(work.keys.soundtrack, Soundtrack)

    def segments() -> Iterator[Segment]:
        for number in range(len(made.segments)):
            work.lease.check()
            yield work.get(work.keys.segment(number), Segment)

    with tempfile.TemporaryDirectory(prefix="talkreel-") as folder:
        path = Path(folder) / "film.webm"
        with report.timing("mux"):
            facts = write_film(path, segments(), soundtrack, film, report.film_metadata())
        work.fleet.store_film(work.order.job, work.keys.film, path)
    report.describe_portrait(picture)
    report.describe_film(film, facts)
    report.frames.plan(made.frames, len(made.numbers))
    work.fleet.store_report(work.order, report)
    return {"film": work.keys.film, "bytes": facts.size}


def _scene(work: Work) -> Scene:
    return work.studio.scene(
        work.get(work.keys.appearance, Appearance),
        work.get(work.keys.motion, Motion),
        work.get(work.keys.sound, Sound).duration,
        work.settings,
    )


def _frames_key(work: Work, step: str) -> str:
    kind, _, number = step.partition(":")
    return work.keys.frames(int(number), settled=kind == "settle")


def partial(report: Report) -> dict[str, Any]:
    """A step's share of the job's report."""
    return {name: asdict(stage) for name, stage in report.stages.items()}
