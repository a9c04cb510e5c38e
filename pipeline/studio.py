"""A pack with its models open: the stages bound to what the pack says of them.

`render` uses one for a film in this process; a worker keeps one for all its tasks. Here settings and
the manifest's parts are turned into the stages' plain arguments, and nowhere else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache, partial
from itertools import chain
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from .faces.crop import CropSpec
from .faces.finder import FaceFinder
from .faces.lips import LipSpec, lip_ratio
from .packs.pack import Pack
from .packs.specs import CheckSpec, DrivingSpec, KeyFrameSpec, MotionLayout, SourceSpec, SpeechSpec
from .packs.store import FACES_PACK, open_pack
from .prefetch import mapped
from .report import Report
from .runtime.binding import Fixed
from .runtime.memory import require_memory
from .runtime.models import Models
from .runtime.options import RuntimeOptions
from .runtime.session import Model
from .settings import Settings
from .stages.appearance import close_mouth, extract_appearance, find_source
from .stages.checks import checked_key_frames
from .stages.compositing import Compositor, SeamSpec
from .stages.film_format import FilmFormat, frames_in
from .stages.generator import batch_size, fixed_inputs, generate, to_pixels
from .stages.interpolation import fill_between
from .stages.keyframes import plan_key_frames
from .stages.keypoints import at_film_frames, driving_keypoints
from .stages.motion import make_motion
from .stages.portrait import prepare_portrait
from .values import F32, U8, Appearance, KeyFrame, Motion, Portrait, Sound

LIP_CLOSING = "lip_closing"
"""The model, where a pack has one, that closes an open mouth at rest."""


class Studio:
    """One pack's stages. Sessions are made when first wanted, so it may be built before a fork.

    Args:
        pack: the pack. options: threads and execution providers.
        models: the pack's models, where the caller has them open already.
    """

    def __init__(self, pack: Pack, options: RuntimeOptions, models: Models | None = None) -> None:
        self.pack = pack
        self.options = options
        self.models = models or Models(pack, options)
        self.speech = SpeechSpec.read(pack)
        self.layout = MotionLayout.read(pack)
        self.source = SourceSpec.read(pack)
        self.driving = DrivingSpec.read(pack)
        self.driving.check(self.source.keypoints)
        self.key_frames = KeyFrameSpec.read(pack)
        self.checks = CheckSpec.read(pack)
        self.crop = CropSpec.read(pack.section("crop"))
        self.seam = SeamSpec.read(pack.section("compositing"))
        lips = pack.manifest.root.optional("lips")
        self.lips = LipSpec.read(lips) if lips else None

    @cached_property
    def finder(self) -> FaceFinder:
        """Face detector and landmark model, the same for every pack."""
        return FaceFinder.open(open_pack(FACES_PACK), self.models.ladder)

    def terminate(self) -> None:
        """End a model's run that is under way, from another thread; it raises RunEndedError there."""
        self.models.terminate()

    def require_memory(self, preset: str) -> None:
        """Raises TooLittleMemoryError: a film of this preset does not fit in the memory that this process may use.
        PackError: there is no such preset."""
        require_memory(self.pack, preset, self.options)

    def warm_up(self, *, motion: bool = True, frames: bool = True) -> None:
        """Open models and run each once with zeros, so that the first film does not wait for them.

        Args:
            motion: those of stage 3. frames: those of stages 4 to 8, the generator of the default preset.
        """
        names = [self.speech.encoder, self.speech.denoiser] if motion else []
        if frames:
            generator = self.pack.manifest.preset(Settings().preset).generator
            names += [self.source.model, "appearance", generator]
        for name in names:
            spec = self.pack.manifest.model(name)
            self.models.get(name).run({role: tensor.zeros() for role, tensor in spec.inputs.items()})

    def prepare_portrait(self, source: Path | BinaryIO, settings: Settings, report: Report) -> Portrait:
        """Stage 2."""
        with report.timing("portrait", self.finder.detector, self.finder.landmarks):
            return prepare_portrait(
                source,
                self.finder,
                self.crop,
                background=settings.background,
                face=settings.face,
                max_side=settings.max_side,
            )

    def make_motion(
        self, sound: Sound, settings: Settings, report: Report, on_window: Callable[[int, int], None]
    ) -> Motion:
        """Stage 3."""
        encoder, denoiser = self.models.get(self.speech.encoder), self.models.get(self.speech.denoiser)
        with report.timing("motion", encoder, denoiser):
            return make_motion(
                sound,
                encoder,
                denoiser,
                self.speech,
                self.layout,
                seed=settings.seed,
                guidance=settings.guidance,
                smoothing=settings.smoothing,
                on_window=on_window,
            )

    def make_appearance(self, portrait: Portrait, report: Report) -> Appearance:
        """Stage 4."""
        model, extractor = self.models.get(self.source.model), self.models.get("appearance")
        with report.timing("appearance", model, extractor):
            source = find_source(portrait, model, self.source)
            ratio = self._open_mouth(portrait)
            if ratio and LIP_CLOSING in self.models:
                source = close_mouth(source, ratio, self.models.get(LIP_CLOSING))
            return extract_appearance(portrait, source, extractor)

    def _open_mouth(self, portrait: Portrait) -> float:
        """The lip ratio of a portrait whose mouth is open, where the pack says what open is; else 0."""
        ratio = lip_ratio(portrait.landmarks, self.lips) if self.lips else 0.0
        return ratio if self.lips and ratio >= self.lips.open_from else 0.0

    def describe_portrait(self, portrait: Portrait, report: Report) -> None:
        """Tell the report of the portrait, and of a mouth that this pack would close and cannot."""
        report.describe_portrait(portrait)
        ratio = self._open_mouth(portrait)
        if ratio and LIP_CLOSING not in self.models:
            report.notes.append(
                f"the portrait's mouth is open (lip ratio {ratio:.2f}) and pack {self.pack.name} has no model that "
                "closes it; pauses may show it open: a picture with closed lips looks better"
            )

    def scene(self, appearance: Appearance, motion: Motion, sound_seconds: float, settings: Settings) -> Scene:
        """What stages 5 to 9 need for this film."""
        count = frames_in(sound_seconds, settings.fps)
        return Scene(self, appearance, at_film_frames(motion, settings.fps, count), count, settings)

    def compositor(self, portrait: Portrait, settings: Settings) -> Compositor:
        """Stage 10."""
        size = self.pack.manifest.preset(settings.preset).size
        return Compositor(portrait, size, self.seam, settings.frame)

    def film_format(self, compositor: Compositor, fps: Fraction) -> FilmFormat:
        """The frame that stage 11 encodes."""
        width, height = compositor.output_size
        return FilmFormat.of(width, height, fps)


@dataclass(frozen=True)
class Scene:
    """One film's appearance and motion: makes any of its frames.

    `motion`: a row a film frame. `count`: film frames.
    """

    studio: Studio
    appearance: Appearance
    motion: Motion
    count: int
    settings: Settings

    @cached_property
    def _stitching(self) -> Model | None:
        models = self.studio.models
        return models.get("stitching") if "stitching" in models else None

    @property
    def _generator(self) -> str:
        return self.studio.pack.manifest.preset(self.settings.preset).generator

    @property
    def batch(self) -> int:
        """How many key frames one run of the generator makes. A frame may depend on those beside it, so all who share
        a film's key frames out share out whole batches."""
        return batch_size(self.studio.pack.manifest.model(self._generator))

    @property
    def chunk(self) -> int:
        """How many key frames make a fair piece of work for one worker: whole batches."""
        return -(-self.studio.key_frames.chunk // self.batch) * self.batch

    @cached_property
    def _fixed(self) -> Fixed:
        return fixed_inputs(self.appearance, self.studio.pack.manifest.model(self._generator))

    @property
    def frames_at_a_time(self) -> int:
        """How many frames are rendered side by side; what comes out does not depend on it."""
        spec = self.studio.pack.manifest.model(self._generator)
        return self.studio.options.thread_count if spec.parallel == "runs" else 1

    def keypoints(self, frame: int) -> F32:
        """Stage 5: driving keypoints [K, 3] of one film frame."""
        return driving_keypoints(
            self.appearance.source,
            self.motion,
            frame,
            self.studio.driving,
            strength=self.settings.strength,
            stitching=self._stitching,
        )

    @cached_property
    def _mouths(self) -> dict[int, F32]:
        """Lip points [L, 3] by frame: the same for every rate of key frames."""
        return {}

    def _mouth(self, frame: int) -> F32:
        if frame not in self._mouths:
            lips = list(self.studio.driving.lip_points) or slice(None)
            self._mouths[frame] = self.keypoints(frame)[lips]
        return self._mouths[frame]

    def key_frame_numbers(self, keyframe_fps: float | None = None) -> NDArray[np.int64]:
        """Stage 6: [n] int64, rising, from the film's first frame to its last.

        Args:
            keyframe_fps: another rate than the settings'; theirs, or the pack's, unless given.
        """
        spec = self.studio.key_frames
        rate = keyframe_fps or self.settings.keyframe_fps or spec.fps
        return plan_key_frames(self._mouth, self.count, self.settings.fps, rate, spec)

    def render(
        self,
        numbers: Sequence[int],
        portrait: U8,
        report: Report,
        *,
        last: KeyFrame | None = None,
    ) -> Iterator[KeyFrame]:
        """Stages 7 and 8: the key frames of these numbers, checked; repairs go to the report.

        Args:
            numbers: whole batches of the film's key frames; the film's last batch may be short.
            portrait: [S, S, 3], what the first frame is compared with.
            last: the settled key frame before the first of these, None at the film's start.
        """
        models = self.studio.models
        batches = [tuple(numbers[start : start + self.batch]) for start in range(0, len(numbers), self.batch)]
        batch_of = {frame: batch for batch in batches for frame in batch}

        def tried(batch: tuple[int, ...]) -> list[tuple[int, F32, F32]]:
            return self._rendered(batch, models.get(self._generator), report)

        @lru_cache(1)  # several frames of one batch may be bad
        def tried_again(batch: tuple[int, ...]) -> dict[int, F32]:
            made = self._rendered(batch, models.second_try(self._generator), report)
            return {frame: image for frame, _, image in made}

        return checked_key_frames(
            chain.from_iterable(mapped(tried, batches, self.frames_at_a_time)),
            lambda frame: tried_again(batch_of[frame])[frame],
            portrait,
            self.studio.checks,
            last=last,
            on_repair=report.repairs.append,
        )

    def assumed(self, numbers: Sequence[int], report: Report) -> KeyFrame:
        """The last of these key frames as the first try makes it, for who renders what follows.

        Args:
            numbers: whole batches, as for `render`.
        """
        batch = tuple(numbers[(len(numbers) - 1) // self.batch * self.batch :])
        frame, points, image = self._rendered(batch, self.studio.models.get(self._generator), report)[-1]
        return KeyFrame(frame, to_pixels(np.nan_to_num(image)), points)

    def _rendered(self, batch: tuple[int, ...], model: Model, report: Report) -> list[tuple[int, F32, F32]]:
        """Number, keypoints [K, 3] and picture [3, S, S] of each frame. A short batch is filled up with its last."""
        with report.timing("keypoints"):
            points = [self.keypoints(frame) for frame in batch]
        filled = np.stack([*points, *[points[-1]] * (self.batch - len(batch))])
        with report.timing("generator", model):
            images = generate(self._fixed, filled, model)
        return list(zip(batch, points, images, strict=False))

    def between(self, key_frames: Iterator[KeyFrame], report: Report | None = None) -> Iterator[tuple[int, U8]]:
        """Stage 9: every frame from the first of these key frames to the last; its seconds go to the report."""
        timing = partial(report.timing, "interpolation") if report else nullcontext
        return fill_between(key_frames, self.keypoints, timing)
