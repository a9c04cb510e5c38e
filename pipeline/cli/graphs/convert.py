"""`talkreel graph convert`."""

from __future__ import annotations

import argparse

from .arguments import add_graph, add_inputs, inputs_of, output_of, show


class ConvertCommand:
    """Let a float32 graph compute in half precision wherever that stays right. Sample inputs are run to find values
    that half precision cannot carry."""

    help = "mixed half precision"

    def configure(self, parser: argparse.ArgumentParser) -> None:
        add_graph(parser, output="MODEL.DTYPE.onnx")
        parser.add_argument("--dtype", default="float16", help="float16 (default) or bfloat16")
        add_inputs(parser)
        parser.add_argument("--no-calibration", action="store_true", help="run no sample inputs")
        parser.add_argument(
            "--half-statistics", action="store_true", help="normalisations read and write half precision"
        )

    def run(self, args: argparse.Namespace) -> int:
        from ...graphs.convert import convert
        from ...graphs.feeds import signature
        from ...graphs.model import load, prepare, save

        output = output_of(args, args.dtype)
        model = prepare(load(args.model), dict(args.dims))
        samples = None
        if not args.no_calibration:
            _, made = inputs_of(args).make(signature(model))
            samples = [row for rows in made.values() for row in rows]
        converted, report = convert(model, args.dtype, calibration=samples, half_statistics=args.half_statistics)
        save(converted, output)
        before, after = report.weight_bytes
        reasons: dict[str, int] = {}
        for why in report.exact.values():
            reasons[why] = reasons.get(why, 0) + 1
        lines = [
            f"{output}: {len(report.halves)} nodes in {report.dtype}, {len(report.exact)} in float32, "
            f"{report.casts} casts; weights {before / 1e6:.1f} MB before, {after / 1e6:.1f} MB after",
            *(f"  {count} stay: {why}" for why, count in sorted(reasons.items(), key=lambda item: -item[1])),
        ]
        data = {
            "output": str(output),
            "dtype": report.dtype,
            "halves": report.halves,
            "exact": report.exact,
            "casts": report.casts,
            "weight_bytes": {"before": before, "after": after},
            "samples": report.calibrated,
        }
        show(args, data, "\n".join(lines))
        return 0
