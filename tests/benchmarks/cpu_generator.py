"""The full-size generator on ONNX Runtime's CPU provider: as it is, lowered, quantised, several frames a run.

Each variant takes turns with the 5-D graph, in one run; ratios are medians over the turns. Takes 10 GB and on two
quiet cores about 30 minutes with --int8, most of it the choice of layers; 10 without.

python -m tests.benchmarks.cpu_generator [--turns 5] [--int8] [--openvino] [--batch 4] [--parts generator]
    [--folder FOLDER]
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

PARTS = ("warping", "generator")
KINDS = ("near", "typical", "far")


def main(arguments: Sequence[str] | None = None) -> None:
    """Build, time, compare, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--batch", type=int, default=4, help="frames a run of the batched variant")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--int8", action="store_true", help="quantise, too")
    parser.add_argument(
        "--openvino", action="store_true", help="each variant in OpenVINO, too, which must be installed"
    )
    parser.add_argument("--folder", type=Path, help="keep the graphs here, and take those that are here already")
    chosen = parser.parse_args(arguments)
    with _folder(chosen.folder) as folder:
        paths = build(folder, batch=chosen.batch, int8=chosen.int8, threads=chosen.threads)
        for part in chosen.parts:
            title = f"{part}, {chosen.threads} threads, against {chosen.turns} runs of the 5-D graph in turns"
            table = Table("", "s a frame", "times as fast", *(f"PSNR {kind}, max" for kind in KINDS), title=title)
            for name, path in paths.items():
                if name.startswith(f"{part},"):
                    frames = chosen.batch if name.endswith("frames") else 1
                    row = measure(paths[part], path, frames=frames, turns=chosen.turns, threads=chosen.threads)
                    table.add_row(name, *row)
                    if chosen.openvino and frames == 1:
                        row = measure(
                            paths[part], path, frames=1, turns=chosen.turns, threads=chosen.threads, openvino=True
                        )
                        table.add_row(f"{name}, OpenVINO", *row)
            Console(width=140).print(table)


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


def measure(source: Path, path: Path, *, frames: int, turns: int, threads: int, openvino: bool = False) -> list[str]:
    """Seconds a frame, their ratio to the source's, and errors against it. Two sessions at a time: more would not fit
    in the memory of a small machine."""
    first = Runner(source, RunOptions(threads))
    second = OpenVino(path, threads) if openvino else Runner(path, RunOptions(threads))
    given = first.feeds(_frames("typical", 1)), second.feeds(_frames("typical", frames))
    times: list[tuple[float, float]] = []
    for turn in range(turns + 1):
        taken = _seconds(first, given[0]), _seconds(second, given[1]) / frames
        if turn:
            times.append(taken)
    errors = []
    for kind in KINDS:
        ((_, wanted),) = first.run(first.feeds(_frames(kind, 1))).items()
        ((_, found),) = second.run(second.feeds(_frames(kind, frames))).items()
        difference = np.abs(found[:1] - wanted)
        mean_square = float(np.square(difference, dtype=np.float64).mean())
        errors.append(f"{-10 * np.log10(mean_square):.1f} dB, {difference.max():.1e}")
    ratio = statistics.median(a / b for a, b in times)
    return [f"{statistics.median(b for _, b in times):.2f}", f"{ratio:.2f}", *errors]


class OpenVino:
    """A graph in OpenVINO's runtime, sums in float32; one frame a run."""

    def __init__(self, path: Path, threads: int) -> None:
        import openvino

        core = openvino.Core()
        core.set_property("CPU", {"INFERENCE_NUM_THREADS": threads, "NUM_STREAMS": 1})
        core.set_property("CPU", {"INFERENCE_PRECISION_HINT": "f32", "ENABLE_CPU_PINNING": False})
        model = core.compile_model(str(path), "CPU")
        self._shapes = {port.get_any_name(): list(port.shape) for port in model.inputs}
        self._request = model.create_infer_request()

    def feeds(self, frames: Sequence[Feeds]) -> Feeds:
        """One frame's inputs, shaped as the graph has them."""
        (frame,) = frames
        return {name: frame[name].reshape(shape) for name, shape in self._shapes.items()}

    def run(self, feeds: Feeds) -> dict[str, np.ndarray]:
        """The picture."""
        (image,) = self._request.infer(feeds).values()
        return {"out": np.array(image)}


def _seconds(runner: Runner | OpenVino, feeds: Feeds) -> float:
    start = time.perf_counter()
    runner.run(feeds)
    return time.perf_counter() - start


def _frames(kind: str, count: int) -> list[Feeds]:
    """Frames of one portrait; the first is the same for any number of them."""
    first = standins.inputs(standins.FULL, kind, 1)
    others = [keypoints(standins.FULL, kind, 100 + index)[0] for index in range(1, count)]
    return [first, *({**first, "kp_driving": points} for points in others)]


if __name__ == "__main__":
    main()
