"""Predicted memory of ONNX Runtime against its measured peak; the full-size generator needs 3 GB.

python -m tests.benchmarks.graph_memory [--model FILE] [--arena-off] [--pattern-off]
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
from rich.console import Console
from rich.table import Table

from pipeline.graphs import standins
from pipeline.graphs.measure import measure_peak
from pipeline.graphs.memory import MemoryOptions, peak_memory


def main(arguments: Sequence[str] | None = None) -> None:
    """Predict, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, help="an .onnx file (default: the full-size stand-in of the generator)")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--arena-off", action="store_true")
    parser.add_argument("--pattern-off", action="store_true")
    chosen = parser.parse_args(arguments)
    options = MemoryOptions(chosen.threads, pattern=not chosen.pattern_off, arena=not chosen.arena_off)
    with tempfile.TemporaryDirectory() as folder:
        path = chosen.model or Path(folder) / "generator.onnx"
        if chosen.model is None:
            onnx.save_model(standins.generator(standins.FULL), path)
        graph, chance = onnx.load(path, load_external_data=False).graph, np.random.default_rng(0)
        shapes = {value.name: [d.dim_value for d in value.type.tensor_type.shape.dim] for value in graph.input}
        feeds = {name: chance.uniform(-0.5, 0.5, shape).astype(np.float32) for name, shape in shapes.items()}
        predicted = peak_memory(path, options)
        measured = measure_peak(path, feeds, options, runs=2)
    table = Table("MiB", "predicted", "measured", title=f"{path.name}, {options}")
    for name, size in predicted.to_json().items():
        table.add_row(name, f"{size / 2**20:.1f}", f"{measured.peak / 2**20:.1f}" if name == "total" else "")
    table.add_row("after loading", "", f"{measured.session / 2**20:.1f}")
    table.add_row("predicted / measured", "", f"{predicted.total / measured.peak:.3f}")
    Console().print(table)


if __name__ == "__main__":
    main()
