"""`talkreel graph lower`."""

from __future__ import annotations

import argparse

from .arguments import add_batch, add_graph, output_of, show


class LowerCommand:
    """Rewrite a graph exactly, for a target that lacks operators or does others faster."""

    help = "rewrite a graph for a target, exactly"

    def configure(self, parser: argparse.ArgumentParser) -> None:
        add_graph(parser, output="MODEL.PRESET.onnx")
        parser.add_argument("--preset", required=True, help="gridsample, rank4, cpu or cuda")
        add_batch(parser)

    def run(self, args: argparse.Namespace) -> int:
        from ...graphs.lower.presets import lower
        from ...graphs.model import load, save

        output = output_of(args, args.preset)
        model = load(args.model)
        lowered = lower(model, args.preset, dims=dict(args.dims), batch=args.batch, batched=args.batched)
        save(lowered.model, output)
        passes = [
            {"name": name, "rewritten": outcome.rewritten, "left": outcome.left}
            for name, outcome in lowered.outcomes.items()
        ]
        lines = [f"{output}: {len(lowered.model.graph)} nodes"]
        for name, outcome in lowered.outcomes.items():
            lines.append(f"  {name}: {len(outcome.rewritten)} nodes rewritten")
            lines += [f"    left {node}: {why}" for node, why in outcome.left.items()]
        show(args, {"output": str(output), "nodes": len(lowered.model.graph), "passes": passes}, "\n".join(lines))
        return 0
