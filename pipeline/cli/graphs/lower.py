"""`talkreel graph lower`."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from .arguments import add_batch, add_graph, output_of, show

if TYPE_CHECKING:
    import onnx_ir as ir


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
        given = _other_operators(model)
        lowered = lower(model, args.preset, dims=dict(args.dims), batch=args.batch, batched=args.batched)
        save(lowered.model, output)
        passes = [
            {"name": name, "rewritten": outcome.rewritten, "left": outcome.left}
            for name, outcome in lowered.outcomes.items()
        ]
        others = sorted(given & _other_operators(lowered.model))  # what was inlined is not among them
        lines = [f"{output}: {len(lowered.model.graph)} nodes"]
        for name, outcome in lowered.outcomes.items():
            lines.append(f"  {name}: {len(outcome.rewritten)} nodes rewritten")
            lines += [f"    left {line}" for line in outcome.reasons()]
        if others:
            lines.append(f"  left as they are, since their meaning is not known here: {', '.join(others)}")
        data = {"output": str(output), "nodes": len(lowered.model.graph), "passes": passes, "other_operators": others}
        show(args, data, "\n".join(lines))
        return 0


def _other_operators(model: ir.Model) -> set[str]:
    """Operators of other domains than ONNX's own."""
    return {f"{node.domain}.{node.op_type}" for node in model.graph if node.domain not in ("", "ai.onnx")}
