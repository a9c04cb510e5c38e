"""The CUDA rung from end to end: a film on it, and what is said when CUDA's libraries are broken on purpose.

    python -m tests.benchmarks.cuda_rung [--small] [--pack FOLDER] [--whole-only] [-o RESULT.json]

Renders the stand-in of timeline-studio in processes of its own: with `--providers cuda,cpu`; again with a damaged
libcublas first in LD_LIBRARY_PATH, where the ladder must say so and go on with the CPU; and so with
`--strict-providers`, where it must refuse. Says milliseconds a key frame, first runs apart, and the share of time
outside the generator, by stages and with first runs apart (they overlap, so they may sum to more than the film took).
Exit code 1 when something else happens. Needs onnxruntime-gpu; `--providers cpu` tries the script without.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from pipeline.packs.standins import write_pack
from pipeline.runtime.elf import needed_libraries
from pipeline.runtime.libraries import provider_library
from tests.benchmarks.stages import SAMPLES, voice_of

ROOT = Path(__file__).parents[2]

BROKEN = "libcublas.so"
"""The library that is damaged."""


def main(arguments: list[str] | None = None) -> int:
    """Run all; print what was found, and write it as JSON."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.cuda_rung", description=__doc__)
    parser.add_argument("-o", "--output", type=Path, help="JSON file to write")
    parser.add_argument("--pack", type=Path, help="a stand-in that is there already (default: written first)")
    parser.add_argument("--small", action="store_true", help="the small stand-in")
    parser.add_argument("--preset", default="quality", help="default: %(default)s")
    parser.add_argument("--seconds", type=float, default=4.0, help="of the film (default: %(default)s)")
    parser.add_argument("--keyframe-fps", type=float, default=5.0, help="default: %(default)s")
    parser.add_argument("--providers", default="cuda,cpu", help="the ladder (default: %(default)s)")
    parser.add_argument("--whole-only", action="store_true", help="no broken libraries")
    chosen = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="cuda-rung-") as name:
        folder = Path(name)
        pack = chosen.pack or folder / "timeline-studio"
        if not chosen.pack:
            write_pack(pack, "timeline-studio", small=chosen.small)
        voice = voice_of(chosen.seconds, folder)
        common = [
            *("render", str(SAMPLES / "portrait.png"), str(voice), "-o", str(folder / "film.webm")),
            *("--pack", str(pack), "--preset", chosen.preset, "--keyframe-fps", str(chosen.keyframe_fps)),
            *("--providers", chosen.providers, "--report", str(folder / "report.json")),
        ]
        best, *below = chosen.providers.split(",")
        found = {"whole": _render(common, folder, _libraries())}
        faults = [] if found["whole"].get("rungs") == [best] else [f"not all of it ran on {best}"]
        if below and not chosen.whole_only:
            broken = _damaged(folder / "damaged")
            found["broken"] = _render(common, folder, broken)
            found["strict"] = _render([*common, "--strict-providers"], folder, broken)
            if found["broken"].get("rungs") != [below[0]] or f"{best} does not run here" not in found["broken"]["said"]:
                faults.append(f"with broken libraries {below[0]} should have been used, and said so")
            if found["strict"]["code"] != 1 or f"{best} does not run here" not in found["strict"]["said"]:
                faults.append("with broken libraries a strict ladder should have refused")
    for run, facts in found.items():
        print(f"--- {run}", *(f"{name}: {value}" for name, value in facts.items()), sep="\n")
    print(*faults or ["as it should be"], sep="\n")
    if chosen.output:
        chosen.output.write_text(json.dumps(found | {"faults": faults}, indent=1) + "\n")
    return 1 if faults else 0


def _render(arguments: list[str], folder: Path, libraries: list[str]) -> dict[str, Any]:
    """One film in a process of its own: its exit code, what it said, and its report's facts."""
    report = folder / "report.json"
    report.unlink(missing_ok=True)
    paths = [*libraries, os.environ.get("LD_LIBRARY_PATH", "")]
    environment = os.environ | {"LD_LIBRARY_PATH": os.pathsep.join(filter(None, paths))}
    command = [sys.executable, "-m", "pipeline", *arguments]
    done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, check=False)
    said = [line for line in done.stderr.splitlines() if line.strip()]
    facts: dict[str, Any] = {"code": done.returncode, "said": "\n".join(said[-12:])}
    if not report.exists():
        return facts
    data = json.loads(report.read_text())
    stages, frames = data["stages"], data["frames"]["key_frames"]
    generator = stages["generator"]
    seconds, steady = generator["seconds"], generator["runs"] - generator["first_runs"]
    return facts | {
        "rungs": sorted({rung for stage in stages.values() for rung in stage["rungs"]}),
        "elsewhere": {model: text for stage in stages.values() for model, text in stage["elsewhere"].items()},
        "key frames": frames,
        "milliseconds a key frame": 1e3 * seconds / frames,
        "steady milliseconds a run": 1e3 * (seconds - generator["first_seconds"]) / steady if steady else None,
        "share of time outside the generator": 1 - seconds / data["seconds"],
        "seconds": data["seconds"],
        "seconds of stages": {name: round(stage["seconds"], 3) for name, stage in stages.items()},
        "of them in first runs": {name: round(stage["first_seconds"], 3) for name, stage in stages.items()},
        "recoveries": [each for stage in stages.values() for each in stage["recoveries"]],
    }


def _libraries() -> list[str]:
    """Folders of CUDA's wheels, wherever on Python's path: onnxruntime itself looks only beside its own."""
    return sorted({str(folder) for path in sys.path for folder in Path(path).glob("nvidia/*/lib")})


def _damaged(folder: Path) -> list[str]:
    """A folder with a library that the loader finds first and cannot load, then those that are sound."""
    library = provider_library("cuda")
    names = [name for name in needed_libraries(library)[0] if name.startswith(BROKEN)] if library else []
    folder.mkdir()
    for name in names:
        (folder / name).write_bytes(b"damaged on purpose")
    return [str(folder), *_libraries()]


if __name__ == "__main__":
    raise SystemExit(main())
