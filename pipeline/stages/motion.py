"""Stage 3: from the sound to the motion, window by window (JoyVASA).

Sound is cut into windows of the pack's length. The encoder turns a window into audio features, the diffusion sampler
asks the denoiser for the motion; each window starts from the last frames of the one before. Where the pack
asks for it, windows overlap and fade into each other: the models hear too little of a sound at the edge of a
window. Models, sizes and constants come from the pack.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from ..errors import ModelError
from ..packs.specs import MotionLayout, SpeechSpec
from ..runtime.session import Array, Model
from ..values import F32, Motion, Sound
from .diffusion import Schedule, guided, sample
from .smoothing import smoothed

OnWindow = Callable[[int, int], None]


def make_motion(
    sound: Sound,
    encoder: Model,
    denoiser: Model,
    spec: SpeechSpec,
    layout: MotionLayout,
    *,
    seed: int,
    guidance: float | None = None,
    smoothing: float | None = None,
    on_window: OnWindow | None = None,
) -> Motion:
    """How a person moves who says this.

    Frame j shows the sound of [j, j + 1) / fps seconds; M = ceil(samples / samples per frame).

    Args:
        sound: at the encoder's sample rate.
        encoder: role `audio` [1, window + pads] -> `audio_features` [1, W, A].
        denoiser: roles `motion` [2, W, V], `audio` [2, W, A], `previous_motion` [2, P, V],
            `previous_audio` [2, P, A], `step` [2] -> `motion` [2, P + W, V].
        spec: what the pack says of the two. layout: what stands where in the motion vector.
        seed: a whole number from 0; the same seed gives the same motion, and a longer sound begins
            with the motion of a shorter one (up to where windows that overlap would begin to fade).
        guidance: how strongly the sound leads, 1 = as the denoiser has it; None = the pack's default.
        smoothing: of the head's motion, see `smoothed`; None = the pack's default.
        on_window: called with (windows done, windows in all) after each; whatever it raises ends the stage.

    Raises:
        ValueError: the sound is empty or of another sample rate.
        ModelError: a model failed or gave values that are not finite.
    """
    if sound.sample_rate != spec.sample_rate or not len(sound.samples):
        raise ValueError(
            f"the encoder wants sound at {spec.sample_rate} Hz, got {len(sound.samples)} samples "
            f"at {sound.sample_rate} Hz"
        )
    frames = -(-len(sound.samples) * spec.window_frames // spec.window_samples)
    windows = max(1, -(-(frames - spec.overlap_frames) // spec.hop_frames))
    schedule = Schedule(spec.alpha, spec.alpha_bar)
    scale = spec.guidance if guidance is None else guidance
    random = np.random.Generator(np.random.PCG64(seed))
    start = _normal(random, spec)
    previous_motion, previous_audio = spec.start_motion, spec.start_audio
    vectors = np.zeros((windows * spec.hop_frames + spec.overlap_frames, spec.motion_size), np.float32)
    for k, samples in enumerate(_windows(sound.samples, windows, spec)):
        audio = encoder.run({"audio": samples[None]})["audio_features"][0]
        denoise = _denoiser(denoiser, audio, previous_motion, previous_audio, spec, scale)
        noises = (_normal(random, spec) for _ in range(schedule.steps - 1))
        window = sample(denoise, start, noises, schedule)
        if not np.isfinite(window).all():
            raise ModelError(
                f"the denoiser gave values that are not finite (window {k + 1} of {windows}); "
                "verify the pack, or try another execution provider"
            )
        shown, shared = vectors[k * spec.hop_frames :][: spec.window_frames], spec.overlap_frames if k else 0
        shown[:shared] = _faded(shown[:shared], window[:shared])
        shown[shared:] = window[shared:]
        before_next = slice(spec.hop_frames - spec.previous_frames, spec.hop_frames)
        previous_motion, previous_audio = window[before_next], audio[before_next]
        if on_window is not None:
            on_window(k + 1, windows)
    made = decode(vectors[:frames], layout, spec.fps)
    return smoothed(made, layout.smoothing if smoothing is None else smoothing)


def decode(vectors: F32, layout: MotionLayout, fps: float) -> Motion:
    """[M, V] motion vectors, as the denoiser has them, into their parts and units."""
    return Motion(
        expression=layout.expression.decode(vectors),
        scale=layout.scale.decode(vectors)[:, 0],
        translation=layout.translation.decode(vectors),
        angles=np.concatenate([part.decode(vectors) for part in (layout.pitch, layout.yaw, layout.roll)], axis=1),
        fps=fps,
    )


def _normal(random: np.random.Generator, spec: SpeechSpec) -> F32:
    return random.standard_normal((spec.window_frames, spec.motion_size), np.float32)


def _windows(samples: F32, count: int, spec: SpeechSpec) -> Iterator[F32]:
    """Windows in order; the last filled up with silence, each reflected at its ends."""
    for k in range(count):
        window = samples[k * spec.hop_samples :][: spec.window_samples]
        window = np.pad(window, (0, spec.window_samples - len(window)))
        for pad in spec.reflect_pads:
            window = np.pad(window, pad, mode="reflect")
        yield window.astype(np.float32, copy=False)


def _faded(before: F32, after: F32) -> F32:
    """[n, V] from the first to the second, slow at both ends so that nothing jerks: 3t^2 - 2t^3."""
    t = np.arange(1, len(after) + 1, dtype=np.float32)[:, None] / np.float32(len(after) + 1)
    return before + (after - before) * (t * t * (3 - 2 * t))


def _denoiser(
    model: Model, audio: F32, previous_motion: F32, previous_audio: F32, spec: SpeechSpec, scale: float
) -> Callable[[F32, int], F32]:
    """(x_t, t) -> guided x0 of one window. Row 0 of the batch is unconditional: only `audio` differs."""
    fixed: dict[str, F32] = {
        "audio": np.stack([np.broadcast_to(spec.null_audio, audio.shape), audio]),
        "previous_motion": np.stack([previous_motion] * 2),
        "previous_audio": np.stack([previous_audio] * 2),
    }

    def denoise(x: F32, step: int) -> F32:
        batch: dict[str, Array] = {"motion": np.stack([x, x]), "step": np.full(2, step, np.int64), **fixed}
        unconditional, conditional = model.run(batch)["motion"][:, spec.previous_frames :]
        return guided(unconditional, conditional, scale)

    return denoise
