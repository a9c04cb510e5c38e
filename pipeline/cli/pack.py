"""`talkreel pack`: packs of models, each task a subcommand."""

from __future__ import annotations

import argparse

from .command import Command
from .packs.build import BuildCommand
from .packs.info import InfoCommand
from .packs.list import ListCommand
from .packs.path import PathCommand
from .packs.pull import PullCommand
from .packs.remove import RemoveCommand
from .packs.verify import VerifyCommand

COMMANDS: dict[str, type[Command]] = {
    "list": ListCommand,
    "info": InfoCommand,
    "pull": PullCommand,
    "verify": VerifyCommand,
    "path": PathCommand,
    "remove": RemoveCommand,
    "build": BuildCommand,
}


class PackCommand:
    """Get packs of models, check them, and make them ready for this machine."""

    help = "list, pull, verify, build and remove packs of models"

    def configure(self, parser: argparse.ArgumentParser) -> None:
        parsers = parser.add_subparsers(dest="task", metavar="TASK", required=True)
        for name, command in COMMANDS.items():
            made = command()
            made.configure(parsers.add_parser(name, help=made.help, description=type(made).__doc__))

    def run(self, args: argparse.Namespace) -> int:
        return COMMANDS[args.task]().run(args)
