"""Seconds a stage: 10 s of sound at 512 px, every frame rendered, crop.

    python -m tests.benchmarks.stages [--seconds 10] [--runs 3] [--threads N] [--preset quality]

The target is under 20 s in all on 2 cores. Each run is a new process, so it includes what a user waits
for: imports, loading the models, warming up.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
import wave
from pathlib import Path
from typing import Any

SAMPLES = Path(__file__).parents[2] / "samples"


def voice_of(seconds: float, folder: Path) -> Path:
    """The sample voice, repeated or cut to this length."""
    with wave.open(str(SAMPLES / "voice.wav")) as sample:
        rate, frames = sample.getframerate(), sample.readframes(sample.getnframes())
    wanted = round(seconds * rate) * 2
    path = folder / "voice.wav"
    with wave.open(str(path), "wb") as out:
        out.setnchannels(1)
        out.setsampwidth(2)
        out.setframerate(rate)
        out.writeframes((frames * (wanted // len(frames) + 1))[:wanted])
    return path


def run(arguments: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """One render in a process of its own; its report with `wall` seconds."""
    report = folder / "report.json"
    command = [sys.executable, "-m", "pipeline", "render", str(SAMPLES / "portrait.png")]
    command += [str(voice_of(arguments.seconds, folder)), "-o", str(folder / "film.webm"), "--frame", arguments.frame]
    command += ["--keyframe-fps", str(arguments.keyframe_fps), "--preset", arguments.preset, "--quiet"]
    command += ["--report", str(report)] + (["--threads", str(arguments.threads)] if arguments.threads else [])
    start = time.perf_counter()
    subprocess.run(command, check=True)
    return {**json.loads(report.read_text()), "wall": time.perf_counter() - start}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--threads", type=int)
    parser.add_argument("--preset", default="quality")
    parser.add_argument("--frame", default="crop")
    parser.add_argument("--keyframe-fps", type=float, default=25)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        reports = [run(arguments, Path(folder)) for _ in range(arguments.runs)]
    frames = reports[0]["frames"]
    rendered = f"{frames['key_frames']} of {frames['total']} frames rendered"
    print(f"{arguments.seconds:g} s of sound, {arguments.preset}, {rendered}")
    print(f"{'stage':<12} {'median s':>9}   {'ms a frame':>10}")
    for stage in reports[0]["stages"]:
        seconds = statistics.median(report["stages"][stage]["seconds"] for report in reports)
        print(f"{stage:<12} {seconds:9.2f}   {seconds / frames['total'] * 1000:10.1f}")
    print("film includes waiting for the frames; stages overlap")
    print(f"{'wall':<12} {statistics.median(report['wall'] for report in reports):9.2f}   all: "
          + " ".join(f"{report['wall']:.1f}" for report in reports))  # fmt: skip
    print(f"peak memory {max(report['peak_memory'] for report in reports) / 2**20:.0f} MiB")


if __name__ == "__main__":
    main()
