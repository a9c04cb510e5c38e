"""`talkreel graph quantise`."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from .arguments import add_graph, add_inputs, output_of, show

if TYPE_CHECKING:
    from ...graphs.lower.passes import Pass


class QuantiseCommand:
    """Hold a graph's weights in fewer bits where its result allows it: convolutions that make a picture in 8 bits, or
    linear layers in 4. What harms the result most is left in more."""

    help = "8-bit convolutions or 4-bit linear layers, as far as the result allows"

    def configure(self, parser: argparse.ArgumentParser) -> None:
        add_graph(parser, output="MODEL.int8.onnx or MODEL.int4.onnx")
        parser.add_argument(
            "--layers", choices=("convs", "linears"), default="convs", help="which, in 8 or 4 bits (default convs)"
        )
        parser.add_argument("--preset", help="lower by this preset first; what stays float32 is finished by it")
        add_inputs(parser)
        parser.add_argument(
            "--samples", type=int, default=2, metavar="N", help="seeds of inputs of each kind (default 2)"
        )
        parser.add_argument("--psnr", type=float, default=35.0, metavar="DB", help="convs: the least PSNR (default 35)")
        parser.add_argument(
            "--error", type=float, default=0.05, metavar="E",
            help="linears: the most difference, in standard deviations of the result (default 0.05)",
        )  # fmt: skip
        parser.add_argument("--timed", action="store_true", help="measure speed, too, and let it weigh in the choice")
        parser.add_argument("--threads", type=int, default=2, help="threads a session (default 2)")
        parser.add_argument("--report", type=Path, metavar="FILE.md", help="write the choices as tables")

    def run(self, args: argparse.Namespace) -> int:
        from ...graphs.feeds import signature
        from ...graphs.lower.presets import PRESETS, lower
        from ...graphs.model import load, prepare, save
        from ...graphs.quantise import quantise_convs, quantise_linears
        from ...graphs.schemes import Inputs
        from ...whole_file import write_whole

        output = output_of(args, "int8" if args.layers == "convs" else "int4")
        model = load(args.model)
        finish: tuple[Pass, ...] = ()
        if args.preset is None:
            prepare(model, dict(args.dims))
        else:
            model = lower(model, args.preset, dims=dict(args.dims), finish=False).model
            finish = PRESETS[args.preset].finish
        ports = signature(model)
        seeds = range(args.seed, args.seed + max(1, args.samples))
        made = [Inputs(args.inputs, seed, args.kinds, args.feeds).make(ports)[1] for seed in seeds]
        samples = [row for kinds in (made[:1] if args.feeds else made) for rows in kinds.values() for row in rows]
        if args.layers == "convs":
            found = quantise_convs(
                model,
                samples,
                psnr=args.psnr,
                finish=finish,
                timed=args.timed,
                threads=args.threads,
                least_speedup=1.0 if args.timed else None,
            )
        else:
            found = quantise_linears(model, samples, error=args.error, timed=args.timed, threads=args.threads)
        save(found.model, output)
        text = found.report.to_markdown()
        if args.report:
            write_whole(args.report, text.encode())
        show(args, {"output": str(output), **found.report.to_json()}, f"{output}\n\n{text}")
        return 0
