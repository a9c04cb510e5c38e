"""`talkreel graph hoist`."""

from __future__ import annotations

import argparse
from pathlib import Path

from .arguments import add_graph, show


class HoistCommand:
    """Divide a graph that runs in a loop: a prologue, run once, makes all that does not depend on the loop's inputs;
    a step takes it on every turn."""

    help = "take out of a graph what a loop would repeat"

    def configure(self, parser: argparse.ArgumentParser) -> None:
        add_graph(parser)
        parser.add_argument(
            "--loop",
            dest="loop",
            action="append",
            required=True,
            metavar="NAME",
            help="an input that changes every turn",
        )
        parser.add_argument("--prologue", type=Path, metavar="OUT.onnx", help="default: MODEL.prologue.onnx, beside it")
        parser.add_argument("--step", type=Path, metavar="OUT.onnx", help="default: MODEL.step.onnx, beside it")

    def run(self, args: argparse.Namespace) -> int:
        from ...graphs.lower.hoist import split
        from ...graphs.model import load, prepare, save

        parts = dict(
            zip(("prologue", "step"), split(prepare(load(args.model), dict(args.dims)), args.loop), strict=True)
        )
        data, lines = {}, []
        for name, part in parts.items():
            path = getattr(args, name) or args.model.with_name(f"{args.model.stem}.{name}.onnx")
            save(part, path)
            ports = {
                side: [str(value.name) for value in values]
                for side, values in (("inputs", part.graph.inputs), ("outputs", part.graph.outputs))
            }
            data[name] = {"output": str(path), "nodes": len(part.graph), **ports}
            lines.append(
                f"{path}: {len(part.graph)} nodes, {', '.join(ports['inputs'])} -> {', '.join(ports['outputs'])}"
            )
        show(args, data, "\n".join(lines))
        return 0
