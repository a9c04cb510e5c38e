"""What a generator's session costs on the CUDA rung, by how it is run: each pair in turns.

    python -m tests.benchmarks.cuda_sessions --pack FOLDER [--preset quality] [-o RESULT.json]

- features kept on the device (IO binding) against copied at each run, in one session;
- the provider's options that the runtime gives against others: a search for kernels by time, channels last;
- batches: several key frames in one run against one (the pack's half-precision graph, lowered for a batch);
- whether three processes make the same picture, by each choice of options.

Milliseconds are medians of runs that wait for the picture in the host's memory, as the stages do.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from pipeline.graphs.lower.presets import lower
from pipeline.graphs.model import load, save
from pipeline.packs.manifest import ModelSpec, Tensor
from pipeline.packs.store import open_pack
from pipeline.runtime import providers
from pipeline.runtime.binding import Fixed
from pipeline.runtime.ladder import Ladder
from pipeline.runtime.options import RuntimeOptions
from pipeline.runtime.providers import parse_rungs
from pipeline.runtime.session import Session

ROOT = Path(__file__).parents[2]

PROVIDER: Mapping[str, Mapping[str, str]] = {
    "as the runtime has it": {},
    "heuristic, channels first": {"cudnn_conv_algo_search": "HEURISTIC", "prefer_nhwc": "0"},
    "heuristic, channels last": {"cudnn_conv_algo_search": "HEURISTIC", "prefer_nhwc": "1"},
    "exhaustive, channels first": {"cudnn_conv_algo_search": "EXHAUSTIVE", "prefer_nhwc": "0"},
    "exhaustive, channels last": {"cudnn_conv_algo_search": "EXHAUSTIVE", "prefer_nhwc": "1"},
}


@contextmanager
def given(options: Mapping[str, str]) -> Iterator[None]:
    """The runtime gives CUDA's provider other options."""
    kinds = dict(providers.KINDS)
    kind = kinds["cuda"]
    providers.KINDS = kinds | {"cuda": replace(kind, options={**kind.options, **options})}
    try:
        yield
    finally:
        providers.KINDS = kinds


def inputs(spec: ModelSpec) -> dict[str, np.ndarray]:
    """Seeded inputs by role: features of a portrait, keypoints of a face that moves a little."""
    random = np.random.Generator(np.random.PCG64(5))
    made = {}
    for role, tensor in spec.inputs.items():
        scale = 0.05 if role.startswith("kp_") else 1.0
        made[role] = (scale * random.standard_normal([side or 1 for side in tensor.shape])).astype(tensor.dtype)
    made["kp_driving"] = made["kp_source"][:1] + made["kp_driving"]
    return made


def turns(runs: int, **cases: Callable[[], object]) -> dict[str, float]:
    """Median milliseconds of each, in turns, after three to warm up."""
    times: dict[str, list[float]] = {name: [] for name in cases}
    for turn in range(runs + 3):
        for name, run in cases.items():
            start = time.perf_counter()
            run()
            if turn >= 3:
                times[name].append(1e3 * (time.perf_counter() - start))
    return {name: round(statistics.median(taken), 3) for name, taken in times.items()}


def main(arguments: list[str] | None = None) -> int:
    """Measure; print, and write as JSON."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.cuda_sessions", description=__doc__)
    parser.add_argument("-o", "--output", type=Path, help="JSON file to write")
    parser.add_argument("--pack", required=True, help="name or folder")
    parser.add_argument("--preset", default="quality", help="default: %(default)s")
    parser.add_argument("--runs", type=int, default=40, help="default: %(default)s")
    parser.add_argument("--batch", type=int, default=4, help="key frames (default: %(default)s; 1: none)")
    parser.add_argument("--providers", default="cuda", help="default: %(default)s")
    parser.add_argument("--digest", help=argparse.SUPPRESS)  # of a picture with these options, in this process
    chosen = parser.parse_args(arguments)
    pack = open_pack(chosen.pack)
    spec = pack.manifest.model(pack.manifest.preset(chosen.preset).generator)
    path, feeds = pack.model_path(spec), inputs(spec)
    ladder = Ladder(RuntimeOptions(providers=parse_rungs(chosen.providers), strict=True))
    fixed = Fixed(object_of(spec), {role: array for role, array in feeds.items() if role != "kp_driving"})
    driving = {"kp_driving": feeds["kp_driving"]}
    if chosen.digest:
        with given(PROVIDER[chosen.digest]):
            image = Session(path, spec, ladder).run(driving, fixed)["image"]
        print(hashlib.sha256(image.tobytes()).hexdigest()[:12])
        return 0

    begun = time.perf_counter()
    session = Session(path, spec, ladder)
    found: dict[str, Any] = {
        "rung": str(session.place.rung),
        "opened and tried, s": round(time.perf_counter() - begun, 2),
    }
    found["first run of zeros, s"] = session.place.trial_seconds
    found["features, ms"] = turns(
        chosen.runs, bound=lambda: session.run(driving, fixed), copied=lambda: session.run(feeds)
    )
    _say(found)
    sessions, opening = {}, {}
    for name, options in PROVIDER.items():
        with given(options):
            begun = time.perf_counter()
            sessions[name] = Session(path, spec, ladder)
            opening[name] = round(time.perf_counter() - begun, 2)
    found["options: opened and tried, s"] = opening
    found["options, ms"] = turns(
        chosen.runs, **{name: (lambda held=held: held.run(driving, fixed)) for name, held in sessions.items()}
    )
    reference = sessions["as the runtime has it"].run(driving, fixed)["image"].astype(np.float64)
    found["options: mean difference"] = {
        name: float(np.abs(held.run(driving, fixed)["image"] - reference).mean()) for name, held in sessions.items()
    }
    del sessions
    _say(found)
    if chosen.batch > 1:
        found["batch"] = batches(path, spec, ladder, feeds, chosen)
        _say(found)
    command = [sys.executable, "-m", "tests.benchmarks.cuda_sessions", "--pack", chosen.pack, "--preset", chosen.preset]
    command += ["--providers", chosen.providers]
    running = {
        name: [
            subprocess.Popen([*command, "--digest", name], cwd=ROOT, stdout=subprocess.PIPE, text=True)
            for _ in range(3)
        ]
        for name in PROVIDER
    }
    found["pictures of three processes"] = {
        name: sorted({process.communicate()[0].strip() for process in each}) for name, each in running.items()
    }
    _say(found)
    if chosen.output:
        chosen.output.write_text(json.dumps(found, indent=1) + "\n")
    return 0


def batches(
    path: Path, spec: ModelSpec, ladder: Ladder, feeds: Mapping[str, np.ndarray], chosen: argparse.Namespace
) -> dict[str, Any]:
    """Milliseconds a key frame, one a run and several a run, in turns."""
    count = chosen.batch
    with tempfile.TemporaryDirectory() as folder:
        together = Path(folder) / "batch.onnx"
        save(
            lower(load(path), "cuda", batch=count, batched=[spec.inputs["kp_driving"].name], boundary=True).model,
            together,
        )
        wide = replace(
            spec,
            inputs={**spec.inputs, "kp_driving": _wider(spec.inputs["kp_driving"], count)},
            outputs={role: _wider(tensor, count) for role, tensor in spec.outputs.items()},
        )
        single, several = Session(path, spec, ladder), Session(together, wide, ladder)
    driving = [feeds["kp_driving"] * (1 + 0.01 * index) for index in range(count)]
    fixed = Fixed(object_of(spec), {role: array for role, array in feeds.items() if role != "kp_driving"})
    apart = several.run({"kp_driving": np.concatenate(driving)}, fixed)["image"]
    alone = np.concatenate([single.run({"kp_driving": each}, fixed)["image"] for each in driving])
    times = turns(
        chosen.runs // 2,
        single=lambda: [single.run({"kp_driving": each}, fixed) for each in driving],
        several=lambda: several.run({"kp_driving": np.concatenate(driving)}, fixed),
    )
    each = {name: round(taken / count, 3) for name, taken in times.items()}
    return {"key frames": count, "ms a key frame": each, "mean difference": float(np.abs(apart - alone).mean())}


def _wider(tensor: Tensor, count: int) -> Tensor:
    return replace(tensor, shape=(count, *tensor.shape[1:]))


class Owner:
    """What inputs on the device belong to."""


OWNERS: list[Owner] = []


def object_of(spec: ModelSpec) -> Owner:
    """A new owner that lives as long as this process."""
    OWNERS.append(Owner())
    return OWNERS[-1]


def _say(found: Mapping[str, Any]) -> None:
    name, value = list(found.items())[-1]
    print(f"{name}: {value}", flush=True)


if __name__ == "__main__":
    raise SystemExit(main())
