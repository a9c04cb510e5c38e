"""What a command of `talkreel` is, and how commands are found."""

from __future__ import annotations

import argparse
from importlib.metadata import EntryPoint, entry_points
from typing import Protocol

from ..errors import RuntimeMissingError

GROUP = "talkreel.commands"
"""Entry-point group; an installed package adds a command by an entry here, named like the command."""

OWN = {
    "render": EntryPoint("render", "pipeline.cli.render:RenderCommand", GROUP),
    "doctor": EntryPoint("doctor", "pipeline.cli.doctor:DoctorCommand", GROUP),
    "graph": EntryPoint("graph", "pipeline.cli.graph:GraphCommand", GROUP),
    "pack": EntryPoint("pack", "pipeline.cli.pack:PackCommand", GROUP),
}
"""The library's own, so that `python -m pipeline` works in a checkout that was not installed."""


class Command(Protocol):
    """One command. The class behind the entry point is called without arguments."""

    help: str
    """One line for `talkreel --help`."""

    def configure(self, parser: argparse.ArgumentParser) -> None:
        """Add the command's arguments."""

    def run(self, args: argparse.Namespace) -> int:
        """Do it; the exit code. Errors of talkreel are raised, `main` prints them."""


def find_commands() -> dict[str, EntryPoint]:
    """Where each command is, by name, in alphabetical order; none is loaded yet."""
    found = OWN | {entry.name: entry for entry in entry_points(group=GROUP)}
    return {name: found[name] for name in sorted(found)}


def load_command(entry: EntryPoint) -> Command:
    """The command behind an entry point.

    Raises:
        RuntimeMissingError: its package does not import, a dependency of it missing for instance.
    """
    try:
        command: Command = entry.load()()
    except (ImportError, AttributeError) as error:
        raise RuntimeMissingError(
            f"the command {entry.name} ({entry.value}) does not load ({error}); install its package again"
        ) from error
    return command
