"""A portrait speaks, in one process: the stages in order."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import BinaryIO

from .faces.crop import CropSpec
from .packs.pack import Pack
from .packs.specs import (
    CheckSpec,
    DrivingSpec,
    KeyFrameSpec,
    MotionLayout,
    SourceSpec,
    SpeechSpec,
)
from .packs.store import DEFAULT_PACK, FACES_PACK, open_pack
from .prefetch import prefetched
from .report import Report, peak_memory
from .runtime.models import Models
from .runtime.session import RuntimeOptions
from .settings import Settings
from .stages.appearance import extract_appearance, find_source
from .stages.checks import checked_key_frames
from .stages.compositing import Compositor, SeamSpec
from .stages.film import FilmFormat, check_output, frames_in, segments_of, write_film
from .stages.generator import generate
from .stages.interpolation import fill_between
from .stages.keyframes import plan_key_frames
from .stages.keypoints import at_film_frames, driving_keypoints
from .stages.motion import motion as make_motion
from .stages.portrait import FaceFinder, prepare_portrait
from .stages.sound import read_sound
from .values import F32, U8, KeyFrame

OnProgress = Callable[[str, int, int], None]
"""Told of stage, steps done, steps in all. What it raises ends the rendering and leaves no file."""

AHEAD = 8
"""Frames made ahead of the encoder; more would only cost memory."""

SYNTHETIC_NOTE = "This video is synthetic: a still portrait animated from a voice recording by talkreel."


def render(
    portrait: str | Path | BinaryIO,
    audio: str | Path | BinaryIO,
    output: str | Path,
    settings: Settings | None = None,
    *,
    pack: Pack | str = DEFAULT_PACK,
    options: RuntimeOptions | None = None,
    models: Models | None = None,
    on_progress: OnProgress = lambda stage, done, total: None,
) -> Report:
    """Turn a portrait and a voice recording into a WebM of that person speaking.

    Args:
        portrait, audio: paths or open binary files.
        output: where the film appears, once it is complete.
        pack: a pack, its name, or its folder.
        options: threads and execution providers. models: the pack's models, where the caller has them open.
        on_progress: see `OnProgress`.

    Returns:
        What happened, frame by frame where something had to be repaired.

    Raises:
        InputError: the inputs or settings cannot be used; nothing was rendered.
        FirstFrameError: the first frame stayed bad. ModelError, FilmError: a fault of ours.
    """
    start = time.perf_counter()
    settings = settings or Settings()
    options = options or RuntimeOptions()
    pack = pack if isinstance(pack, Pack) else open_pack(pack)
    models = models or Models(pack, options)
    preset = pack.manifest.preset(settings.preset)
    output = check_output(Path(output))
    report = Report(
        pack=pack.name,
        pack_revision=pack.revision,
        settings=settings.to_json(),
        threads=options.thread_count,
        synthetic=SYNTHETIC_NOTE if settings.synthetic_note else None,
    )

    # 1. Sound
    with report.timing("sound"):
        sound, soundtrack = read_sound(audio)
    on_progress("sound", 1, 1)

    # 2. Portrait
    with report.timing("portrait"):
        finder = FaceFinder(Models(open_pack(FACES_PACK), options))
        picture = prepare_portrait(
            portrait,
            finder,
            CropSpec.read(pack.section("crop")),
            background=settings.background,
            face=settings.face,
            max_side=settings.max_side,
        )
        report.stages["portrait"].provider = finder.provider
    on_progress("portrait", 1, 1)

    # 3. Motion
    speech = SpeechSpec.read(pack)
    encoder, denoiser = models.get(speech.encoder), models.get(speech.denoiser)
    with report.timing("motion", denoiser.provider):
        motion = make_motion(
            sound,
            encoder,
            denoiser,
            speech,
            MotionLayout.read(pack),
            seed=settings.seed,
            guidance=settings.guidance,
            on_window=lambda done, total: on_progress("motion", done, total),
        )

    # 4. Appearance
    source_spec = SourceSpec.read(pack)
    source_model, appearance_model = models.get(source_spec.model), models.get("appearance")
    with report.timing("appearance", appearance_model.provider):
        source = find_source(picture, source_model, source_spec)
        appearance = extract_appearance(picture, source, appearance_model)
    on_progress("appearance", 1, 1)

    # 5. Keypoints
    driving = DrivingSpec.read(pack)
    stitching = models.get("stitching") if "stitching" in models else None
    count = frames_in(sound.duration, settings.fps)
    motion = at_film_frames(motion, settings.fps, count)

    def keypoints(frame: int) -> F32:
        with report.timing("keypoints"):
            return driving_keypoints(source, motion, frame, driving, strength=settings.strength, stitching=stitching)

    # 6. Key frames
    key_frame_spec = KeyFrameSpec.read(pack)
    with report.timing("key frames"):
        lips = list(driving.lip_points)
        keys = plan_key_frames(
            lambda frame: keypoints(frame)[lips],
            count,
            settings.fps,
            settings.keyframe_fps or key_frame_spec.fps,
            key_frame_spec,
        )
    report.frames.total, report.frames.key_frames = count, len(keys)
    report.frames.interpolated = count - len(keys)

    # 7. Generator, 8. Checks
    generators = models.attempts(preset.generator)

    def attempt(number: int) -> Callable[[F32], F32]:
        def run(points: F32) -> F32:
            with report.timing("generator", generators[number].provider):
                return generate(appearance, points, generators[number])

        return run

    def key_frames() -> Iterator[KeyFrame]:
        made = checked_key_frames(
            keys.tolist(),
            keypoints,
            [attempt(number) for number in range(len(generators))],
            picture.pixels,
            CheckSpec.read(pack),
            on_repair=report.repairs.append,
        )
        for done, key in enumerate(made, 1):
            on_progress("frames", done, len(keys))
            yield key

    # 9. Interpolation, 10. Paste-back
    compositor = Compositor(picture, preset.size, settings.frame, SeamSpec.read(pack.section("compositing")))

    def frames() -> Iterator[U8]:
        for _, image in fill_between(key_frames(), keypoints):
            with report.timing("compositing"):
                yield compositor.compose(image)

    # 11. Film
    width, height = compositor.film_size
    film = FilmFormat(width, height, settings.fps)
    with report.timing("film"), closing(prefetched(frames(), AHEAD)) as ready:
        facts = write_film(output, segments_of(ready, film), soundtrack, film, {"SYNTHETIC": report.synthetic or ""})

    report.film = facts.to_json()
    report.portrait = {}
    report.seconds = time.perf_counter() - start
    report.peak_memory = peak_memory()
    return report
