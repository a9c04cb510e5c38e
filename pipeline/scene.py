"""One film's frames: stages 5 to 9 bound to one appearance and one motion."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from .prefetch import mapped
from .report import Report
from .runtime.binding import Fixed
from .runtime.session import Model
from .settings import Settings
from .stages.checks import checked_key_frames
from .stages.generator import batch_size, fixed_inputs, generate, to_pixels
from .stages.interpolation import fill_between
from .stages.keyframes import plan_key_frames
from .stages.keypoints import driving_keypoints
from .values import F32, U8, Appearance, KeyFrame, Motion

if TYPE_CHECKING:
    from .studio import Studio


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
