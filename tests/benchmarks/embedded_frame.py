"""A frame of the embedded pack's generator on one core: two packs' generators take turns in one run.

Each pack makes its own features from the same portrait with its own graphs; both show the same poses, so their pictures
are compared, too. CPU time is that of the thread: other programs on the machine do not count, though they cost cache.

    git worktree add /tmp/before main
    python -m tests.benchmarks.embedded_frame /tmp/before/pipeline/packs/embedded [OTHER_PACK] [--turns 40]
        [--preset quality] [--face FACE]

OTHER_PACK is the one of this source tree when left out. Models run as the renderer opens them, with one thread.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from pipeline.packs.pack import Pack
from pipeline.runtime.options import RuntimeOptions
from pipeline.settings import Settings
from pipeline.stages.generator import fixed_inputs, generate
from pipeline.studio import Studio
from pipeline.values import F32
from tests.faces.acting import POSES, Actor, face_files

EMBEDDED = Path(__file__).parents[2] / "pipeline" / "packs" / "embedded"
ACTED = ("closed", "aa", "ee", "oo", "f v", "smile", "blink", "gaze left", "yaw -12 aa", "yaw +12 oh", "roll 8")


class Contender:
    """One pack's generator, with features of its own of one portrait."""

    def __init__(self, folder: Path, picture: Path, preset: str) -> None:
        self.name = str(folder)
        studio = Studio(Pack.open(folder), RuntimeOptions(threads=1))
        self.actor = Actor.open(picture, studio)
        name = studio.pack.manifest.preset(preset).generator
        self._fixed = fixed_inputs(self.actor.appearance, studio.pack.manifest.model(name))
        self._model = studio.models.get(name)

    def frame(self, keypoints: F32) -> tuple[F32, float, float]:
        """A frame [1, 3, S, S], RGB 0..1, and the seconds of CPU and of the clock that it took."""
        cpu, wall = time.thread_time(), time.perf_counter()
        image = generate(self._fixed, keypoints[None], self._model)
        return image, time.thread_time() - cpu, time.perf_counter() - wall


def main(arguments: Sequence[str] | None = None) -> None:
    """Let them take turns, compare, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", type=Path, help="folder of a pack")
    parser.add_argument("after", type=Path, nargs="?", default=EMBEDDED)
    parser.add_argument("--turns", type=int, default=40)
    parser.add_argument("--preset", default=Settings().preset)
    parser.add_argument("--face", default="anna", help="a portrait of the set, or a picture's path")
    chosen = parser.parse_args(arguments)
    (picture,) = face_files([chosen.face])
    contenders = [Contender(folder, picture, chosen.preset) for folder in (chosen.before, chosen.after)]
    keypoints = contenders[0].actor.keypoints([POSES[name] for name in ACTED])
    times: list[list[tuple[float, float]]] = [[], []]
    likeness = dict.fromkeys(ACTED, np.inf)
    for turn in range(-2, chosen.turns):
        pose = turn % len(ACTED)
        images = []
        for contender, spent in zip(contenders, times, strict=True):
            image, cpu, wall = contender.frame(keypoints[pose])
            images.append(image)
            if turn >= 0:
                spent.append((cpu, wall))
        likeness[ACTED[pose]] = psnr(*images)
    report(contenders, times, likeness)


def psnr(one: F32, other: F32) -> float:
    """dB, of pictures of 0..1."""
    mean_square = float(np.square(one.astype(np.float64) - other).mean())
    return -10 * float(np.log10(mean_square)) if mean_square else np.inf


def report(contenders: list[Contender], times: list[list[tuple[float, float]]], likeness: dict[str, float]) -> None:
    """Milliseconds a frame, ratios of neighbouring turns, and PSNR between the two, a pose."""
    table = Table("", "CPU ms: median", "least", "wall ms: median", "least", title=f"{len(times[0])} turns")
    for contender, spent in zip(contenders, times, strict=True):
        cells = [f"{1000 * of(column):.1f}" for column in zip(*spent, strict=True) for of in (statistics.median, min)]
        table.add_row(contender.name, *cells)
    console = Console(width=140)
    console.print(table)
    for index, clock in enumerate(("CPU", "wall")):
        ratio = statistics.median(a[index] / b[index] for a, b in zip(*times, strict=True))
        console.print(f"{clock} time, first to second: {ratio:.2f} (median over the turns)")
    console.print("PSNR, dB: " + ", ".join(f"{pose} {value:.1f}" for pose, value in likeness.items()))


if __name__ == "__main__":
    main()
