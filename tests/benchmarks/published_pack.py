"""The published pack's full-size stand-in, end to end: seconds, peak memory, and the same film from the fleet.

    python -m tests.benchmarks.published_pack                  # writes the stand-in, 950 MB, and renders 4 s at 512 px
    python -m tests.benchmarks.published_pack --pack FOLDER    # of a pack that is there
    python -m tests.benchmarks.published_pack --small          # narrow networks: does it still work?

The target is 4 s of sound at 2 key frames a second in under 6 GB on 2 cores. Memory is the process's own high-water
mark, models and all; the fleet has one worker process.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import psutil

from pipeline.packs.standins import write_pack
from tests.benchmarks.stages import SAMPLES, voice_of
from tests.workers.fleet import running_fleet

PORTRAIT = SAMPLES / "portrait.png"
LIMIT = 6e9


def render_here(pack: Path, voice: Path, film: Path, arguments: argparse.Namespace) -> dict[str, Any]:
    """One render in a process of its own; its report with `wall` and `cpu` seconds and `peak` bytes."""
    report = film.with_suffix(".json")
    command = [sys.executable, "-m", "pipeline", "render", str(PORTRAIT), str(voice), "-o", str(film)]
    command += ["--pack", str(pack), "--preset", arguments.preset, "--keyframe-fps", str(arguments.keyframe_fps)]
    command += ["--frame", "crop", "--threads", str(arguments.threads), "--report", str(report), "--quiet"]
    start = time.perf_counter()
    process = subprocess.Popen(command)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"the render ended with {process.returncode}")
    peak = usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    cpu = usage.ru_utime + usage.ru_stime
    return {**json.loads(report.read_text()), "wall": time.perf_counter() - start, "cpu": cpu, "peak": peak}


def render_on_fleet(
    pack: Path, voice: Path, folder: Path, arguments: argparse.Namespace
) -> tuple[bytes, dict[str, Any]]:
    """The same on one worker of one process: the film, and seconds and peak bytes of that process."""
    threads = {"TALKREEL_THREADS": str(arguments.threads)}
    with running_fleet(folder, "one", environment=threads) as fleet:
        start = time.perf_counter()
        job = fleet.client().submit(
            PORTRAIT, voice, pack=str(pack), preset=arguments.preset, frame="crop", keyframe_fps=arguments.keyframe_fps
        )
        job.wait(timeout=7200)
        film = job.result()
        wall = time.perf_counter() - start
        return film, {"wall": wall, "peak": max(map(high_water, fleet.workers[0].children))}


def high_water(process: psutil.Process) -> int:
    """Largest resident size so far, bytes (Linux)."""
    status = Path(f"/proc/{process.pid}/status").read_text()
    found = re.search(r"VmHWM:\s+(\d+) kB", status)
    return int(found[1]) * 1024 if found else 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pack", type=Path, help="folder of an opened pack")
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--seconds", type=float, default=4)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--preset", default="quality")
    parser.add_argument("--keyframe-fps", type=float, default=2)
    parser.add_argument("--no-fleet", dest="fleet", action="store_false")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        pack = arguments.pack or write_pack(folder / "timeline-studio", small=arguments.small)
        voice, film = voice_of(arguments.seconds, folder), folder / "film.webm"
        made = render_here(pack, voice, film, arguments)
        frames, stages = made["frames"], made["stages"]
        for stage, record in stages.items():
            print(f"{stage:14} {record['seconds']:7.1f} s")
        print(
            f"{frames['total']} frames, {frames['key_frames']} rendered, {made['wall']:.0f} s in all "
            f"({made['cpu']:.0f} s of CPU), "
            f"{stages['generator']['seconds'] / frames['key_frames']:.1f} s a key frame, "
            f"peak {made['peak'] / 1e9:.2f} GB",
            flush=True,
        )
        if arguments.fleet:
            other, facts = render_on_fleet(pack.resolve(), voice, folder, arguments)
            same = other == film.read_bytes()
            print(f"fleet: {facts['wall']:.0f} s, peak {facts['peak'] / 1e9:.2f} GB, the same film: {same}")
            if not same:
                raise SystemExit(1)
        if made["peak"] > LIMIT:
            raise SystemExit(f"more than {LIMIT / 1e9:.0f} GB")


if __name__ == "__main__":
    main()
