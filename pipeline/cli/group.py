"""A command whose tasks are subcommands, and what such a task needs to be installed."""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Mapping
from typing import ClassVar

from ..errors import RuntimeMissingError
from .command import Command


class CommandGroup:
    """Hands its arguments on to one of its commands."""

    help: ClassVar[str]
    commands: ClassVar[Mapping[str, type[Command]]]

    def configure(self, parser: argparse.ArgumentParser) -> None:
        parsers = parser.add_subparsers(dest="task", metavar="TASK", required=True)
        for name, command in self.commands.items():
            made = command()
            made.configure(parsers.add_parser(name, help=made.help, description=command.__doc__))

    def run(self, args: argparse.Namespace) -> int:
        return self.commands[args.task]().run(args)


def require_graphs(what: str) -> None:
    """Raises RuntimeMissingError: the extra `graphs` is not installed, which this command needs."""
    for module in ("onnx", "onnx_ir"):
        try:
            importlib.import_module(module)
        except ImportError as error:
            raise RuntimeMissingError(
                f'{what} needs {module} ({error}); install it: pip install "talkreel[graphs]"'
            ) from error
