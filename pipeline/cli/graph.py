"""`talkreel graph`: tools for ONNX graphs, each a subcommand."""

from __future__ import annotations

import argparse

from .graphs.audit import AuditCommand
from .graphs.compare import CompareCommand
from .graphs.convert import ConvertCommand
from .graphs.hoist import HoistCommand
from .graphs.lower import LowerCommand
from .graphs.plan import PlanCommand
from .graphs.prove import ProveCommand
from .graphs.quantise import QuantiseCommand
from .group import CommandGroup, require_graphs


class GraphCommand(CommandGroup):
    """Look into, rewrite and compare ONNX graphs."""

    help = "audit, lower, convert, quantise, plan, compare and prove ONNX graphs"
    commands = {  # noqa: RUF012
        "audit": AuditCommand,
        "lower": LowerCommand,
        "convert": ConvertCommand,
        "quantise": QuantiseCommand,
        "plan": PlanCommand,
        "compare": CompareCommand,
        "prove": ProveCommand,
        "hoist": HoistCommand,
    }

    def run(self, args: argparse.Namespace) -> int:
        require_graphs("talkreel graph")
        return super().run(args)
