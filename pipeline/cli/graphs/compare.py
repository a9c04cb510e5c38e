"""`talkreel graph compare`."""

from __future__ import annotations

import argparse
from pathlib import Path

from .arguments import add_graph, add_inputs, add_run, inputs_of, options_of, show


class CompareCommand:
    """Run two graphs on the same seeded inputs and say how far their outputs lie apart, beside the noise floor: what
    the same mathematics in another order makes of the first graph."""

    help = "differences of two graphs' outputs, beside the noise floor"

    def configure(self, parser: argparse.ArgumentParser) -> None:
        add_graph(parser)
        parser.add_argument("other", metavar="OTHER.onnx", type=Path)
        add_inputs(parser)
        add_run(parser)
        parser.add_argument("--layers", action="store_true", help="also the values that both hold under one name")
        parser.add_argument(
            "--other-provider", metavar="NAME[:KEY=VALUE,…]", help="of the second graph (default: as the first)"
        )
        parser.add_argument("--bound", type=float, metavar="R", help="fail when an error is over R times the floor")
        parser.add_argument("--mean", type=float, metavar="E", help="fail when a mean error is over E")
        parser.add_argument("--psnr", type=float, metavar="DB", help="fail when a PSNR is below DB")

    def run(self, args: argparse.Namespace) -> int:
        from ...errors import ProofError
        from ...graphs.compare import compare
        from ...graphs.comparison import error_table, over
        from ...graphs.runner import RunOptions

        made = compare(
            args.model,
            args.other,
            dims=dict(args.dims),
            inputs=inputs_of(args),
            layers=args.layers,
            options=options_of(args),
            second_options=RunOptions.parse(args.other_provider or args.provider, args.threads),
        )
        lines = ["In brackets the noise floor.", "", *error_table(made.outputs)]
        if made.layers:
            lines += ["", *error_table(made.layers)]
        show(args, made.to_json(), "\n".join(lines))
        if broken := over(made, args.bound, mean=args.mean, psnr=args.psnr):
            raise ProofError(f"{args.other} is not like {args.model}: {'; '.join(broken)}")
        return 0
