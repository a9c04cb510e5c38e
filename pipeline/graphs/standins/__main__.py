"""`python -m pipeline.graphs.standins generator -o FILE`: write a stand-in to a file."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import onnx

from . import FULL, SMALL, SeededWeights, appearance, generator, spade_part, warping_part

PARTS = {"whole": generator, "warping": warping_part, "spade": spade_part}


def main(arguments: Sequence[str] | None = None) -> int:
    """Parse the command line, write the file, and say what is in it."""
    parser = argparse.ArgumentParser(prog="python -m pipeline.graphs.standins", description=__doc__)
    parser.add_argument("network", choices=["generator", "appearance"])
    parser.add_argument("-o", "--output", type=Path, required=True, help="ONNX file to write")
    parser.add_argument("--small", action="store_true", help="small widths and sizes, for tests")
    parser.add_argument("--preview", action="store_true", help="generator: the last block at half the size")
    parser.add_argument("--part", choices=PARTS, default="whole", help="generator: the whole or one half")
    parser.add_argument("--seed", type=int, default=0, help="of the weights (default: %(default)s)")
    chosen = parser.parse_args(arguments)
    spec = replace(SMALL if chosen.small else FULL, preview=chosen.preview)
    build = appearance if chosen.network == "appearance" else PARTS[chosen.part]
    model = build(spec, SeededWeights(chosen.seed))
    onnx.save_model(model, chosen.output)
    print(f"{chosen.output}: {len(model.graph.node)} nodes, {chosen.output.stat().st_size / 1e6:.1f} MB")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
