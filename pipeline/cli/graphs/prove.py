"""`talkreel graph prove`."""

from __future__ import annotations

import argparse

from .arguments import add_batch, add_graph, add_inputs, add_run, inputs_of, options_of, output_of, show


class ProveCommand:
    """Lower a graph, compare the result with it, time both, and write the evidence (JSON and Markdown) beside the
    result. Exit code 1 when a bound is broken."""

    help = "lower a graph and show that it is still the same function"

    def configure(self, parser: argparse.ArgumentParser) -> None:
        add_graph(parser, output="MODEL.PRESET.onnx")
        parser.add_argument("--preset", required=True, help="gridsample, rank4, cpu or cuda")
        add_batch(parser)
        add_inputs(parser)
        add_run(parser)
        parser.add_argument("--layers", action="store_true", help="also compare values that both hold under one name")
        parser.add_argument("--bound", type=float, default=2.0, metavar="R", help="greatest error in noise floors (2)")
        parser.add_argument("--faster", type=float, metavar="R", help="fail when it is less than R times as fast")
        parser.add_argument("--runs", type=int, default=5, metavar="N", help="pairs of timed runs, 0 for none (5)")

    def run(self, args: argparse.Namespace) -> int:
        from ...graphs.prove import prove

        evidence = prove(
            args.model,
            args.preset,
            output_of(args, args.preset),
            dims=dict(args.dims),
            batch=args.batch,
            batched=args.batched,
            inputs=inputs_of(args),
            layers=args.layers,
            options=options_of(args),
            bound=args.bound,
            faster=args.faster,
            runs=args.runs,
        )
        show(args, evidence.to_json(), evidence.markdown())
        return 0
