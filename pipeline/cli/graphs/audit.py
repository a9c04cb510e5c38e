"""`talkreel graph audit`."""

from __future__ import annotations

import argparse

from .arguments import add_graph, show


class AuditCommand:
    """Say what a graph holds: operators by type and rank, tensors above rank 4, parameters, operations and bytes a
    node, what each target lacks, and with --loop what a loop over some inputs repeats in vain."""

    help = "what a graph holds, costs, and what targets lack of it"

    def configure(self, parser: argparse.ArgumentParser) -> None:
        add_graph(parser)
        parser.add_argument(
            "--target", dest="targets", action="append", help="cpu, cuda, webgpu or openvino; default all"
        )
        parser.add_argument("--version", help="of the one target's runtime, such as 1.25")
        parser.add_argument(
            "--loop", dest="loop", action="append", default=[], metavar="NAME", help="an input that changes every turn"
        )
        parser.add_argument("--top", type=int, default=12, metavar="N", help="nodes with the most operations (12)")

    def run(self, args: argparse.Namespace) -> int:
        from ...graphs.audit import audit
        from ...graphs.model import load, prepare

        model = load(args.model)
        if args.dims:
            model = prepare(model, dict(args.dims))
        found = audit(model, args.targets, args.loop, args.version)
        show(args, found.to_json(), found.text(args.top))
        return 0
