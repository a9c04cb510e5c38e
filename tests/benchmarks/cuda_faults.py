"""Real faults of a CUDA device in the midst of a film: its memory taken, its context broken, halves that overflow.

    python -m tests.benchmarks.cuda_faults [--pack FOLDER] [--small] [-o RESULT.json]

Each case is a film's key frames in a process of its own, with the ladder cuda,cpu:

- `sound`: nothing goes wrong; its key frames are what the others' are compared with.
- `memory passes`: after a few frames another process takes all of the card's memory, and gives it back once a run has
  failed. The session is made again on cuda.
- `memory stays`: it is not given back; the film goes on with the CPU.
- `short at first`: the card is full until the models are wanted that need it; as above.
- `lost`: a kernel of this process writes where it must not, so that every later call to the device fails.
- `overflow`: a generator whose halves overflow; every frame is repeated with its float32 variant on the card.
- `strict …`: with --strict-providers, where the ladder must refuse.

ONNX Runtime's arena on the card keeps what it once had, so that a warm session asks for nothing: for the cases of
memory it is told to give back what is free after each run. `--providers cpu` tries the script without faults.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir

from pipeline import RuntimeOptions, Settings
from pipeline.errors import TalkreelError
from pipeline.graphs.lower.editing import Editor
from pipeline.graphs.model import load
from pipeline.packs.pack import Pack
from pipeline.packs.standins import write_pack
from pipeline.packs.store import open_pack
from pipeline.report import Report
from pipeline.runtime import recovery
from pipeline.runtime.arena import ARENA
from pipeline.runtime.providers import parse_rungs
from pipeline.stages.sound import read_sound
from pipeline.studio import Studio
from tests.benchmarks.cuda_driver import Card, Filler
from tests.benchmarks.stages import SAMPLES, voice_of
from tests.published import copy_pack

ROOT = Path(__file__).parents[2]

BEFORE = 3
"""Key frames before the fault."""

LEFT = 64 << 20
"""Bytes of the card that are not taken."""

CASES = ("sound", "memory passes", "memory stays", "short at first", "lost", "overflow", "strict memory", "strict lost")


def main(arguments: list[str] | None = None) -> int:
    """Run all cases; print what was found, and write it as JSON."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.cuda_faults", description=__doc__)
    parser.add_argument("-o", "--output", type=Path, help="JSON file to write")
    parser.add_argument("--pack", help="a pack that is there already (default: the stand-in is written first)")
    parser.add_argument("--small", action="store_true", help="the small stand-in")
    parser.add_argument("--preset", default="quality", help="default: %(default)s")
    parser.add_argument("--frames", type=int, default=8, help="key frames (default: %(default)s)")
    parser.add_argument("--providers", default="cuda,cpu", help="the ladder (default: %(default)s)")
    parser.add_argument("--cases", nargs="*", default=CASES, help="some of them")
    parser.add_argument("--case", nargs=2, help=argparse.SUPPRESS)  # one, in this process, and its folder
    chosen = parser.parse_args(arguments)
    if chosen.case:
        return _one(chosen, chosen.case[0], Path(chosen.case[1]))
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(prefix="cuda-faults-") as name:
        folder = Path(name)
        pack = chosen.pack or str(write_pack(folder / "timeline-studio", "timeline-studio", small=chosen.small))
        for case in chosen.cases:
            command = [sys.executable, "-m", "tests.benchmarks.cuda_faults", "--pack", pack, "--preset", chosen.preset]
            command += ["--frames", str(chosen.frames), "--providers", chosen.providers, "--case", case, name]
            done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=300)
            try:
                found[case] = json.loads(done.stdout.strip().splitlines()[-1])
            except (IndexError, ValueError):
                found[case] = {"died": done.returncode, "said": done.stderr.strip().splitlines()[-12:]}
            found[case]["code"] = done.returncode
            print(f"--- {case}", *(f"{key}: {value}" for key, value in found[case].items()), sep="\n", flush=True)
    if chosen.output:
        chosen.output.write_text(json.dumps(found, indent=1) + "\n")
    return 0


def _one(chosen: argparse.Namespace, case: str, folder: Path) -> int:
    """The key frames of one case; its facts as the last line."""
    pack = open_pack(chosen.pack)
    if case == "overflow":
        pack = overflowing(pack, chosen.preset, folder / "overflowing")
    options = RuntimeOptions(providers=parse_rungs(chosen.providers), strict=case.startswith("strict"))
    device = next((int(rung.device or 0) for rung in options.providers or () if rung.kind == "cuda"), None)
    fault = partial(FAULTS[case], device) if case in FAULTS and device is not None else None
    facts: dict[str, Any] = {}
    report, images, seconds = Report(), [], []
    try:
        for image, took in frames(pack, chosen, options, report, folder, fault, early=case == "short at first"):
            images.append(image)
            seconds.append(took)
    except TalkreelError as error:
        facts["refused"] = f"{type(error).__name__}: {error}"
    told = report.to_json()
    facts |= {
        "frames": len(images),
        "rungs of the generator": report.stages["generator"].rungs if "generator" in report.stages else [],
        "recoveries": [str(each) for each in report.recoveries()],
        "falls": [str(each) for each in report.falls()],
        "rendered again": told["frames"]["rendered_again"][:2],
        "carried on": len(told["frames"]["carried_on"]),
        "seconds a frame": [round(took, 3) for took in seconds],
    }
    stored = folder / "sound.npy"
    if case == "sound":
        np.save(stored, np.stack(images), allow_pickle=False)
    elif stored.exists() and images:
        apart = np.abs(np.load(stored)[: len(images)].astype(int) - np.stack(images)).reshape(len(images), -1)
        facts["mean difference of frames, of 255"] = [round(float(each.mean()), 4) for each in apart]
        facts["the same frames"] = int((apart.max(axis=1) == 0).sum())
    print(json.dumps(facts), flush=True)
    return 0


def frames(
    pack: Pack,
    chosen: argparse.Namespace,
    options: RuntimeOptions,
    report: Report,
    folder: Path,
    fault: Callable[[], object] | None,
    *,
    early: bool,
) -> Any:
    """Key frames, uint8, and the seconds that each took; `fault` happens after some of them, or with `early` first."""
    settings = Settings(preset=chosen.preset, frame="crop")
    studio = Studio(pack, options)
    sound, _ = read_sound(voice_of(2, folder))
    picture = studio.prepare_portrait(SAMPLES / "portrait.png", settings, report)
    motion = studio.make_motion(sound, settings, report, lambda done, total: None)
    appearance = studio.make_appearance(picture, report)
    scene = studio.scene(appearance, motion, sound.duration, settings)
    numbers = np.linspace(0, scene.count - 1, chosen.frames).astype(int).tolist()
    begun = time.perf_counter()
    if fault and early:
        fault()
    for done, key in enumerate(scene.render(numbers, picture.pixels, report), 1):
        yield key.image, time.perf_counter() - begun
        if fault and not early and done == BEFORE:
            fault()
        begun = time.perf_counter()


def take_memory(device: int, *, passes: bool, early: bool = False) -> None:
    """Another process takes the card; with `passes` until a run has failed."""
    make = ARENA.run_options

    def giving_back(**how: Any) -> Any:
        options = make(**how)
        options.add_run_config_entry("memory.enable_memory_arena_shrinkage", f"gpu:{device}")
        return options

    ARENA.run_options = giving_back  # type: ignore[method-assign]
    _shrink()
    if early:  # what is opened from now on may be on the CPU, which knows no such arena
        ARENA.run_options = make  # type: ignore[method-assign]
    filler = Filler(device, LEFT)
    print(f"taken: {filler.taken / 2**30:.1f} GiB, left: {Card(device).free() / 2**20:.0f} MiB", file=sys.stderr)
    HELD.append(filler)
    recover = recovery.ManagedModel._recover

    def recovering(self: Any, failed: Any, error: Any) -> None:
        if passes:
            filler.release()
        recover(self, failed, error)

    recovery.ManagedModel._recover = recovering  # type: ignore[method-assign]


HELD: list[Filler] = []
"""They live as long as this process."""


def _shrink() -> None:
    """Let every session that is open give back what its arena on the card holds free: one more run of each."""
    from pipeline.runtime.residents import RESIDENTS

    for model in RESIDENTS._open:
        session: Any = model._session  # type: ignore[attr-defined]
        zeros = {tensor.name: tensor.zeros(256) for tensor in session._spec.inputs.values()}
        with contextlib.suppress(Exception):  # some lengths do not do
            session._session.run(None, zeros, ARENA.run_options())


def overflowing(pack: Pack, preset: str, folder: Path) -> Pack:
    """The pack with a generator whose last half-precision values grow too large for their type and become not a
    number; its float32 variant is sound."""
    name = pack.manifest.preset(preset).generator
    spec = pack.manifest.model(name)
    model = load(pack.model_path(spec))
    value = next(
        v for node in reversed(model.graph) for v in node.inputs if v is not None and v.dtype == ir.DataType.FLOAT16
    )
    node = value.uses()[0].node
    editor = Editor(model, before=node)
    large = editor.const(np.float16(6e4))
    grown = editor.op("Mul", editor.op("Mul", value, large), large)
    spoilt = editor.op("Add", value, editor.op("Sub", grown, grown))  # infinite less infinite
    for index, given in enumerate(node.inputs):
        if given is value:
            node.replace_input_with(index, spoilt)
    path = folder.with_suffix(".onnx")
    ir.save(model, path)
    return copy_pack(pack, folder, {spec.file: path.read_bytes()}, lambda manifest: None)


FAULTS: dict[str, Callable[[int], object]] = {
    "memory passes": partial(take_memory, passes=True),
    "memory stays": partial(take_memory, passes=False),
    "short at first": partial(take_memory, passes=False, early=True),
    "strict memory": partial(take_memory, passes=False),
    "lost": lambda device: Card(device).break_context(),
    "strict lost": lambda device: Card(device).break_context(),
}


if __name__ == "__main__":
    raise SystemExit(main())
