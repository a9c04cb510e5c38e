"""Memory of a process that renders key frames for long: its growth after the first ones, in percent.

    python -m tests.benchmarks.soak [--frames 500] [--preset quality] [--pack NAME] [--small] [-o RESULT.json]

Exits with 1 when the memory grew by more than `--limit` percent between the first tenth and the end. With `--small` the
generator is a handful of nodes, so that a run takes seconds; otherwise the pack's own, on the sample portrait.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from pipeline import RuntimeOptions, Settings, open_pack
from pipeline.machine import memory_peak, memory_resident
from pipeline.report import Report
from pipeline.scene import Scene
from pipeline.studio import Studio
from pipeline.values import Motion
from tests.small_pack import build_small_pack, portrait_of, small_scene

SAMPLE = Path(__file__).parents[2] / "samples" / "portrait.png"
SMALL_SIDE = 256


def scene_of(pack: str, preset: str, threads: int, frames: int) -> tuple[Scene, np.ndarray]:
    """The sample portrait with a head that nods slowly, and the crop that the first frame is compared with."""
    settings = Settings(preset=preset)
    studio = Studio(open_pack(pack), RuntimeOptions(threads=threads))
    portrait = studio.prepare_portrait(SAMPLE, settings, Report())
    appearance = studio.make_appearance(portrait, Report())
    expression = appearance.source.expression if appearance.source.basis is None else appearance.source.basis[:, 0, 0]
    still = np.zeros((frames, 3), np.float32)
    nod = np.float32(4) * np.sin(np.arange(frames, dtype=np.float32)[:, None] / 9) * np.float32([[1, 0, 0]])
    motion = Motion(np.zeros((frames, expression.size), np.float32), np.ones(frames, np.float32), still, nod, 25.0)
    return Scene(studio, appearance, motion, frames, settings), portrait.pixels


def grown(scene: Scene, portrait: np.ndarray, frames: int) -> Iterator[int]:
    """Resident bytes after each key frame."""
    for _ in scene.render(range(frames), portrait, Report()):
        yield memory_resident() or memory_peak()


def main(arguments: list[str] | None = None) -> int:
    """Render, print, and judge."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.soak", description=__doc__.splitlines()[0])
    parser.add_argument("--frames", type=int, default=500)
    parser.add_argument("--preset", default="quality")
    parser.add_argument("--pack", default="embedded")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--small", action="store_true", help="a generator of a handful of nodes")
    parser.add_argument("--limit", type=float, default=2.0, help="percent (default: %(default)s)")
    parser.add_argument("-o", "--output", type=Path, help="JSON file to write")
    chosen = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        if chosen.small:
            pack = build_small_pack(Path(folder) / "pack", side=SMALL_SIDE, layers=4)
            shifts = 0.2 + 0.1 * np.sin(np.arange(chosen.frames) / 9)
            scene, portrait = small_scene(pack, shifts, SMALL_SIDE), portrait_of(SMALL_SIDE)
        else:
            scene, portrait = scene_of(chosen.pack, chosen.preset, chosen.threads, chosen.frames)
        sizes = list(grown(scene, portrait, chosen.frames))
    warm, end = sizes[len(sizes) // 10], sizes[-1]
    growth = 100 * (end - warm) / warm
    print(f"{len(sizes)} key frames: {warm / 2**20:.1f} MiB -> {end / 2**20:.1f} MiB, {growth:+.2f} %")
    if chosen.output:
        chosen.output.write_text(json.dumps({"frames": len(sizes), "bytes": sizes, "growth_percent": growth}))
    return int(growth > chosen.limit)


if __name__ == "__main__":
    sys.exit(main())
