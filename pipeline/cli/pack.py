"""`talkreel pack`: packs of models, each task a subcommand."""

from __future__ import annotations

from .group import CommandGroup
from .packs.build import BuildCommand
from .packs.info import InfoCommand
from .packs.list import ListCommand
from .packs.path import PathCommand
from .packs.pull import PullCommand
from .packs.remove import RemoveCommand
from .packs.verify import VerifyCommand


class PackCommand(CommandGroup):
    """Get packs of models, check them, and make them ready for this machine."""

    help = "list, pull, verify, build and remove packs of models"
    commands = {  # noqa: RUF012
        "list": ListCommand,
        "info": InfoCommand,
        "pull": PullCommand,
        "verify": VerifyCommand,
        "path": PathCommand,
        "remove": RemoveCommand,
        "build": BuildCommand,
    }
