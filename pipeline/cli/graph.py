"""`talkreel graph`: tools for ONNX graphs, each a subcommand."""

from __future__ import annotations

import argparse
import importlib

from ..errors import RuntimeMissingError
from .command import Command
from .graphs.audit import AuditCommand
from .graphs.compare import CompareCommand
from .graphs.convert import ConvertCommand
from .graphs.hoist import HoistCommand
from .graphs.lower import LowerCommand
from .graphs.plan import PlanCommand
from .graphs.prove import ProveCommand
from .graphs.quantise import QuantiseCommand

COMMANDS: dict[str, type[Command]] = {
    "audit": AuditCommand,
    "lower": LowerCommand,
    "convert": ConvertCommand,
    "quantise": QuantiseCommand,
    "plan": PlanCommand,
    "compare": CompareCommand,
    "prove": ProveCommand,
    "hoist": HoistCommand,
}


class GraphCommand:
    """Look into, rewrite and compare ONNX graphs."""

    help = "audit, lower, convert, quantise, plan, compare and prove ONNX graphs"

    def configure(self, parser: argparse.ArgumentParser) -> None:
        parsers = parser.add_subparsers(dest="tool", metavar="TOOL", required=True)
        for name, command in COMMANDS.items():
            made = command()
            made.configure(parsers.add_parser(name, help=made.help, description=type(made).__doc__))

    def run(self, args: argparse.Namespace) -> int:
        for module in ("onnx", "onnx_ir"):
            try:
                importlib.import_module(module)
            except ImportError as error:
                raise RuntimeMissingError(
                    f'talkreel graph needs {module} ({error}); install it: pip install "talkreel[graphs]"'
                ) from error
        return COMMANDS[args.tool]().run(args)
