"""A portrait speaks, in one process: the stages in order."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import BinaryIO

from .deadline import Deadline
from .errors import OutputError
from .machine import memory_peak
from .pace import decide_here
from .packs.pack import Pack
from .packs.store import DEFAULT_PACK, open_pack
from .prefetch import prefetched
from .report import Report
from .runtime.options import RuntimeOptions
from .settings import Settings
from .stages.film import write_film
from .stages.film_format import segment_ranges
from .stages.segments import Segment, encode_segment
from .stages.sound import read_sound
from .studio import Studio
from .values import U8, KeyFrame

OnProgress = Callable[[str, int, int], None]
"""Told of stage, steps done, steps in all. What it raises ends the rendering and leaves no file."""

AHEAD = 8
"""Frames made ahead of the encoder; more would only cost memory."""

OTHER_FORMATS = {
    ".3gp", ".asf", ".avi", ".flv", ".m2ts", ".m4v", ".mkv", ".mov", ".mp4", ".mpeg", ".mpg", ".ogv", ".ts", ".wmv",
    ".apng", ".avif", ".gif", ".jpeg", ".jpg", ".png", ".webp",
    ".flac", ".m4a", ".mka", ".mp3", ".ogg", ".opus", ".wav",
}  # fmt: skip
"""Ends of the names of films, pictures and sounds that are no WebM."""


def check_output(path: Path) -> Path:
    """The place where the film (or its report) shall appear, before any work is begun.

    Raises:
        OutputError: its folder does not exist or cannot be written, it is a folder or a device itself, or its name
            is too long.
    """
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        pass
    except OSError as error:
        raise OutputError(f"{path} cannot be written ({error.strerror}); give another name") from None
    if path.is_dir():
        raise OutputError(f"{path} is a folder; give the name of a file, for instance {path / 'film.webm'}")
    if path.exists() and not path.is_file():
        raise OutputError(f"{path} is a device or a pipe, which a film would replace; give the name of a file")
    if not path.parent.is_dir():
        cure = "that is a file; give" if path.parent.exists() else "create it, or give"
        raise OutputError(f"there is no folder {path.parent}; {cure} another place")
    if not os.access(path.parent, os.W_OK):
        raise OutputError(f"{path.parent} cannot be written to; give another place")
    return path


def check_film(path: Path, *inputs: str | Path | BinaryIO) -> Path:
    """`check_output` of a film of these inputs.

    Raises:
        OutputError: as there, as in `check_film_name`, or the film would replace an input.
    """
    check_output(path)
    for source in inputs:
        # os.path.exists, unlike Path's, says no of a name that cannot be.
        if isinstance(source, str | Path) and path.exists() and os.path.exists(source) and path.samefile(source):
            raise OutputError(f"{path} is an input too, which the film would replace; give it another name")
    check_film_name(path)
    return path


def check_film_name(path: Path) -> None:
    """Raises OutputError: a film's name is that of another format, by which players would go."""
    if path.suffix.lower() in OTHER_FORMATS:
        raise OutputError(f"{path} would be a WebM by another format's name; call it {path.with_suffix('.webm').name}")


def _opened(source: str | Path | BinaryIO) -> Path | BinaryIO:
    return Path(source) if isinstance(source, str) else source


def ignore_progress(stage: str, done: int, total: int) -> None:
    """No progress wanted."""


def render(
    portrait: str | Path | BinaryIO,
    audio: str | Path | BinaryIO,
    output: str | Path,
    settings: Settings | None = None,
    *,
    pack: Pack | str = DEFAULT_PACK,
    options: RuntimeOptions | None = None,
    studio: Studio | None = None,
    deadline: float | None = None,
    on_progress: OnProgress = ignore_progress,
    on_note: Callable[[str], None] = lambda note: None,
) -> Report:
    """Turn a portrait and a voice recording into a WebM of that person speaking.

    Args:
        portrait, audio: paths or open binary files.
        output: where the film appears, once it is complete.
        pack: a pack, its name, or its folder. options: threads and execution providers.
        studio: an open one to be used instead of pack and options.
        deadline: seconds from now in which the film must be done. Where they do not suffice for it as asked, the
            rate of key frames is lowered, then the preset; the report says so.
        on_progress: see `OnProgress`. on_note: told in one line what is made otherwise than asked.

    Returns:
        What happened, frame by frame where something had to be repaired.

    Raises:
        InputError: the inputs or settings cannot be used, or the models do not fit in the memory; nothing was rendered.
        OutOfTimeError: it cannot be done by the deadline, or was not; nothing is left.
        FirstFrameError: the first frame stayed bad. ModelError, FilmError: a fault of ours.
    """
    begun, clock = time.perf_counter(), Deadline(deadline)
    settings = settings or Settings()
    studio = studio or Studio(pack if isinstance(pack, Pack) else open_pack(pack), options or RuntimeOptions())
    output = check_film(Path(output), portrait, audio)
    studio.require_memory(settings.preset)  # that, or an unknown one, is told before any work
    report = Report.begin(studio.pack, settings, studio.options.thread_count)

    def step(stage: str, done: int, total: int) -> None:
        clock.check(f"{stage}, {done} of {total}")
        on_progress(stage, done, total)

    with report.timing("sound"):
        sound, soundtrack = read_sound(_opened(audio))
    step("sound", 1, 1)

    picture = studio.prepare_portrait(_opened(portrait), settings, report)
    studio.describe_portrait(picture, report)
    step("portrait", 1, 1)

    motion = studio.make_motion(sound, settings, report, on_window=lambda done, total: step("motion", done, total))

    appearance = studio.make_appearance(picture, report)
    step("appearance", 1, 1)

    scene = studio.scene(appearance, motion, sound.duration, settings)
    if deadline is not None:
        decision = decide_here(scene, picture, clock)
        settings, scene = decision.settings, replace(scene, settings=decision.settings)
        report.describe_budget(decision)
        if note := decision.note():
            on_note(note)
        step("budget", 1, 1)
    with report.timing("key frames"):
        numbers = scene.key_frame_numbers().tolist()
    report.frames.plan(scene.count, len(numbers))

    def key_frames() -> Iterator[KeyFrame]:
        for done, key in enumerate(scene.render(numbers, picture.pixels, report), 1):
            step("frames", done, len(numbers))
            yield key

    compositor = studio.compositor(picture, settings)

    def frames() -> Iterator[U8]:
        for _, image in scene.between(key_frames(), report):
            clock.check("the film's frames")
            with report.timing("compositing"):
                yield compositor.compose(image)

    film = studio.film_format(compositor, settings.fps)
    with closing(prefetched(frames(), AHEAD)) as ready:

        def segments() -> Iterator[Segment]:
            for part in segment_ranges(scene.count, film.segment_frames):
                yield encode_segment(islice(ready, len(part)), film)

        with report.timing("film"):
            facts = write_film(output, segments(), soundtrack, film, report.film_metadata())

    report.describe_film(film, facts)
    report.seconds = time.perf_counter() - begun
    report.peak_memory = memory_peak()
    return report
