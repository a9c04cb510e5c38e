"""What a command of `talkreel` is, and how commands are found."""

from __future__ import annotations

import argparse
from importlib.metadata import EntryPoint, entry_points
from typing import Protocol

GROUP = "talkreel.commands"
"""Entry-point group; an installed package adds a command by an entry here, named like the command."""


class Command(Protocol):
    """One command. The class behind the entry point is called without arguments."""

    help: str
    """One line for `talkreel --help`."""

    def configure(self, parser: argparse.ArgumentParser) -> None:
        """Add the command's arguments."""

    def run(self, args: argparse.Namespace) -> int:
        """Do it; the exit code. Errors of talkreel are raised, `main` prints them."""


def find_commands() -> dict[str, EntryPoint]:
    """Where each installed command is, by name, in alphabetical order; none is loaded yet."""
    found = {entry.name: entry for entry in entry_points(group=GROUP)}
    return {name: found[name] for name in sorted(found)}


def load_command(entry: EntryPoint) -> Command:
    """The command behind an entry point."""
    command: Command = entry.load()()
    return command
