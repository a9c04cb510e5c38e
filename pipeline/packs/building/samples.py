"""What a generator is fed when a pack's own models see a face and hear a voice: to calibrate on, and to judge on."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image, ImageEnhance, ImageOps

from ...errors import TalkreelError
from ...graphs.feeds import Array, Feeds, Signature
from ...graphs.schemes import Inputs
from ...report import Report
from ...runtime.options import RuntimeOptions
from ...settings import Settings
from ...studio import Studio
from ...values import Motion, Sound
from ..manifest import ModelSpec
from ..pack import Pack

PORTRAIT = Path(__file__).with_name("portrait.jpg")
"""The picture that ships; its mirror image and darker and paler ones count as other portraits."""

SECONDS = 2
FRAMES = 3
"""Frames of each portrait, spread over the sound."""

Roles = Mapping[str, Array]


@dataclass(frozen=True)
class Samples:
    """Inputs of a generator by role. `judged` are of portraits that `calibration` has not seen."""

    calibration: Sequence[Roles]
    judged: Sequence[Roles]
    origin: str
    """Where they come from, for people."""

    def feeds(self, spec: ModelSpec, ports: Signature, *, judged: bool = False) -> list[Feeds]:
        """Calibration's inputs, or those to be judged, by the tensors' names; where there are none, seeded ones."""
        rows = self.judged if judged else self.calibration
        if not rows:
            seeds = (2,) if judged else (0, 1)
            return [row for seed in seeds for kind in Inputs(seed=seed).make(ports)[1].values() for row in kind]
        names = {role: tensor.name for role, tensor in spec.inputs.items()}
        return [
            {name: row[role].astype(ports[name].dtype) for role, name in names.items() if name in ports} for row in rows
        ]


def collect(pack: Pack, portraits: Sequence[Path], threads: int) -> Samples:
    """Run the pack's own models on portraits and a voice.

    A pack that lacks what that takes gives seeded samples, unless portraits were asked for.

    Raises:
        TalkreelError: a given portrait cannot be used, or a model fails on it.
    """
    try:
        studio = Studio(pack, RuntimeOptions(threads=threads))
        pictures = [picture for path in portraits or [PORTRAIT] for picture in _variants(path)]
        sound = syllables(studio.speech.sample_rate)
        motion = studio.make_motion(sound, Settings(), Report(), lambda done, total: None)
        rows = [_rows(studio, picture, motion, sound) for picture in pictures]
    except TalkreelError as error:
        if portraits:
            raise
        return Samples((), (), f"seeded inputs, as this pack's models made none of a portrait ({error})")
    flat = [row for kind in rows[:-1] for row in kind]
    return Samples(flat, rows[-1], f"{len(pictures)} portraits, {FRAMES} frames of speech each; judged on the last")


def _variants(path: Path) -> list[bytes]:
    """A picture, and others made of it, as files."""
    with Image.open(path) as stored:
        upright = ImageOps.exif_transpose(stored).convert("RGB")
    dark = ImageEnhance.Brightness(ImageEnhance.Color(upright).enhance(0.6)).enhance(0.6)
    mirrored = ImageEnhance.Contrast(ImageOps.mirror(upright)).enhance(0.8)
    made = []
    for picture in (upright, dark, mirrored):
        file = io.BytesIO()
        picture.save(file, "PNG")
        made.append(file.getvalue())
    return made


def _rows(studio: Studio, picture: bytes, motion: Motion, sound: Sound) -> list[Roles]:
    report, settings = Report(), Settings()
    portrait = studio.prepare_portrait(io.BytesIO(picture), settings, report)
    appearance = studio.make_appearance(portrait, report)
    scene = studio.scene(appearance, motion, sound.duration, settings)
    source = appearance.source.keypoints[None]
    frames = np.linspace(0, scene.count - 1, FRAMES + 2).round().astype(int)[1:-1]
    return [
        {**appearance.features, "kp_source": source, "kp_driving": scene.keypoints(int(frame))[None]}
        for frame in frames
    ]


def syllables(rate: int) -> Sound:
    """A voice-like sound, SECONDS long: harmonics of a gliding pitch, four syllables a second."""
    time = np.arange(SECONDS * rate) / rate
    phase = 2 * np.pi * np.cumsum(140 + 30 * np.sin(2 * np.pi * 0.7 * time)) / rate
    harmonics = sum(np.sin(number * phase) / number for number in range(1, 12))
    loudness = np.clip(np.sin(2 * np.pi * 2 * time), 0, None) ** 0.5
    return Sound((0.1 * harmonics * loudness).astype(np.float32), rate, float(SECONDS))
