"""The full-size generator on ONNX Runtime's CPU provider: as it is, lowered, quantised, several frames a run.

All variants in turns, in one run; ratios against the 5-D graph are medians over the turns. Takes 6 GB and about
15 minutes with --int8, most of it the choice of layers; 5 without.

python -m tests.benchmarks.cpu_generator [--turns 5] [--int8] [--batch 4] [--folder FOLDER]
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import onnx
from rich.console import Console
from rich.table import Table

from pipeline.graphs import standins
from pipeline.graphs.feeds import Feeds
from pipeline.graphs.lower.presets import PRESETS, lower
from pipeline.graphs.model import load, save
from pipeline.graphs.quantise import quantise_convs
from pipeline.graphs.runner import Runner, RunOptions
from pipeline.graphs.standins.keypoints import keypoints

KINDS = ("near", "typical", "far")


def main(arguments: Sequence[str] | None = None) -> None:
    """Build, time, compare, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--batch", type=int, default=4, help="frames a run of the batched variant")
    parser.add_argument("--int8", action="store_true", help="quantise, too")
    parser.add_argument("--folder", type=Path, help="keep the graphs here, and take those that are here already")
    chosen = parser.parse_args(arguments)
    with _folder(chosen.folder) as folder:
        paths = build(folder, batch=chosen.batch, int8=chosen.int8, threads=chosen.threads)
        for part in ("warping", "generator"):
            measure(
                {name: path for name, path in paths.items() if name.startswith(part)},
                turns=chosen.turns,
                threads=chosen.threads,
                batch=chosen.batch,
            )


@contextmanager
def _folder(kept: Path | None) -> Iterator[Path]:
    if kept is not None:
        kept.mkdir(parents=True, exist_ok=True)
        yield kept
        return
    with tempfile.TemporaryDirectory() as made:
        yield Path(made)


def build(folder: Path, *, batch: int, int8: bool, threads: int) -> dict[str, Path]:
    """The variants' files; those that are there already are taken as they are."""
    names = ["warping", "warping, cpu", "generator", "generator, cpu", f"generator, cpu, {batch} frames"]
    names += ["generator, cpu, int8"] if int8 else []
    paths = {name: folder / f"{name.replace(', ', '.').replace(' ', '-')}.onnx" for name in names}
    for name, path in paths.items():
        if path.exists():
            continue
        source = paths[name.partition(",")[0]]
        start = time.perf_counter()
        if path == source:
            make = standins.generator if name == "generator" else standins.warping_part
            onnx.save_model(make(standins.FULL, standins.SeededWeights(0)), path)
        elif name.endswith("int8"):
            graph = lower(load(source), "cpu", finish=False).model
            feeds = [standins.inputs(standins.FULL, kind, 7) for kind in KINDS]
            found = quantise_convs(
                graph, feeds, finish=PRESETS["cpu"].finish, timed=True, least_speedup=1.0, threads=threads
            )
            save(found.model, path)
            path.with_suffix(".md").write_text(found.report.to_markdown(), "utf-8")
        else:
            frames = batch if name.endswith("frames") else 1
            save(lower(load(source), "cpu", batch=frames, batched=["kp_driving"]).model, path)
        print(f"{name}: {path.stat().st_size / 1e6:.0f} MB, made in {time.perf_counter() - start:.0f} s", flush=True)
    return paths


def measure(paths: dict[str, Path], *, turns: int, threads: int, batch: int) -> None:
    """Seconds a frame and errors against the first variant."""
    runners = {name: Runner(path, RunOptions(threads)) for name, path in paths.items()}
    sizes = {name: batch if name.endswith("frames") else 1 for name in paths}
    times: dict[str, list[float]] = {name: [] for name in paths}
    feeds = {name: runners[name].feeds(_frames("typical", size)) for name, size in sizes.items()}
    for turn in range(turns + 1):
        for name, runner in runners.items():
            start = time.perf_counter()
            runner.run(feeds[name])
            if turn:
                times[name].append((time.perf_counter() - start) / sizes[name])
    source = next(iter(paths))
    table = Table(
        "", "s a frame", "times as fast", *(f"PSNR {kind}, max" for kind in KINDS), title=f"{threads} threads"
    )
    for name, runner in runners.items():
        errors = []
        for kind in KINDS:
            wanted = runners[source].run(runners[source].feeds(_frames(kind, 1)))
            found = runner.run(runner.feeds(_frames(kind, sizes[name])))
            ((_, first),) = wanted.items()
            difference = np.abs(next(iter(found.values()))[:1] - first)
            mean_square = float(np.square(difference, dtype=np.float64).mean())
            decibel = f"{-10 * np.log10(mean_square):.1f} dB" if mean_square else "equal"
            errors.append(f"{decibel}, {difference.max():.1e}")
        ratio = statistics.median(a / b for a, b in zip(times[source], times[name], strict=True))
        table.add_row(name, f"{statistics.median(times[name]):.2f}", f"{ratio:.2f}", *errors)
    Console(width=140).print(table)


def _frames(kind: str, count: int) -> list[Feeds]:
    """Frames of one portrait; the first is the same for any number of them."""
    first = standins.inputs(standins.FULL, kind, 1)
    others = [keypoints(standins.FULL, kind, 100 + index)[0] for index in range(1, count)]
    return [first, *({**first, "kp_driving": points} for points in others)]


if __name__ == "__main__":
    main()
