"""A pack with its models open: the stages bound to what the pack says of them.

`render` uses one for a film in this process; a worker keeps one for all its tasks. Here settings and
the manifest's parts are turned into the stages' plain arguments, and nowhere else.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import BinaryIO

from .faces.crop import CropSpec
from .faces.finder import FaceFinder
from .faces.lips import LipSpec, lip_ratio
from .packs.pack import Pack
from .packs.specs import CheckSpec, DrivingSpec, KeyFrameSpec, MotionLayout, SourceSpec, SpeechSpec
from .packs.store import FACES_PACK, open_pack
from .report import Report
from .runtime.memory import require_memory
from .runtime.models import Models
from .runtime.options import RuntimeOptions
from .scene import Scene
from .settings import Settings
from .stages.appearance import close_mouth, extract_appearance, find_source
from .stages.compositing import Compositor, SeamSpec
from .stages.film_format import FilmFormat, frames_in
from .stages.keypoints import at_film_frames
from .stages.motion import make_motion
from .stages.portrait import prepare_portrait
from .values import Appearance, Motion, Portrait, Sound

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
            model = self.models.get(name)
            model.run({role: tensor.zeros() for role, tensor in spec.inputs.items()})
            model.spent()  # of no stage: the first that runs the model is not to count what was before it

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
