"""Who is measured: the pack as it is, its hand-built predecessor, and a mouth that opens with the loudness."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipeline.packs.embedded.authoring.visemes import CLASSES, TEMPLATES
from pipeline.packs.pack import Pack
from pipeline.packs.specs import MotionLayout, SpeechSpec
from pipeline.packs.store import open_pack
from pipeline.runtime.models import Models
from pipeline.runtime.options import RuntimeOptions
from pipeline.stages.motion import make_motion
from pipeline.values import Motion, Sound

Floats = NDArray[np.floating[Any]]

RATE, FRAME = 16000, 640
PREDECESSOR = "bcfdc57"
"""Commit whose embedded pack had the hand-built speech models."""

ROOT = Path(__file__).parents[3]


class Speaker:
    """A pack's speech models."""

    def __init__(self, pack: Pack, threads: int = 1) -> None:
        models = Models(pack, RuntimeOptions(threads=threads))
        self.spec, self.layout = SpeechSpec.read(pack), MotionLayout.read(pack)
        self.encoder, self.denoiser = models.get(self.spec.encoder), models.get(self.spec.denoiser)

    def motion(self, samples: Floats, seed: int = 0) -> Motion:
        sound = Sound(samples.astype(np.float32), RATE, len(samples) / RATE)
        return make_motion(sound, self.encoder, self.denoiser, self.spec, self.layout, seed=seed)

    def __call__(self, samples: Floats) -> Floats:
        """[n] samples at 16 kHz -> [M, 52] coefficients."""
        return self.motion(samples).expression


def loudness_only(samples: Floats) -> Floats:
    """ "aa" as wide as the frame is loud: 0 at 30 dB below the loudest frames, 1 at them."""
    blocks = np.pad(samples, (0, -len(samples) % FRAME)).reshape(-1, FRAME)
    decibels = 10 * np.log10((blocks**2).mean(1) + 1e-9)
    loudest = np.sort(decibels)[-max(1, len(decibels) // 10) :].mean()
    level = np.clip((decibels - loudest + 30) / 30, 0, 1)
    return level[:, None] * TEMPLATES[CLASSES.index("aa")]


def predecessor(scratch: Path) -> Pack:
    """The hand-built pack, from the repository's history."""
    archive = subprocess.run(
        ["git", "-C", str(ROOT), "archive", PREDECESSOR, "pipeline/packs/embedded"], check=True, capture_output=True
    ).stdout
    subprocess.run(["tar", "-x", "-C", str(scratch)], input=archive, check=True)
    return open_pack(str(scratch / "pipeline/packs/embedded"))


def subjects(pack: str, scratch: Path) -> dict[str, Callable[[Floats], Floats]]:
    """Name -> [n] samples at 16 kHz -> [M, 52] coefficients."""
    return {
        "trained": Speaker(open_pack(pack)),
        "hand-built": Speaker(predecessor(scratch)),
        "loudness": loudness_only,
    }
