"""Finds the commands, runs one, turns errors into one line and an exit code."""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Sequence

from ..errors import RuntimeMissingError, TalkreelError
from ..versions import version_of
from .command import Command, find_commands, load_command


def run(arguments: Sequence[str]) -> int:
    """Run the command that the arguments name; the exit code.

    Raises:
        TalkreelError: what the command raises. SystemExit: bad usage, --help, --version.
    """
    parser = argparse.ArgumentParser(
        prog="talkreel", description="A portrait and a voice recording become a WebM of that person speaking."
    )
    parser.add_argument("--version", action="version", version=f"talkreel {version_of('talkreel')}")
    parsers = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    found = find_commands()
    commands: dict[str, Command] = {}
    # Only what is asked for is loaded: a film in one process does not wait for the fleet's imports, nor fail by them.
    if arguments and arguments[0] in found:
        commands[arguments[0]] = load_command(found[arguments[0]])
    else:
        for name, entry in found.items():
            with contextlib.suppress(RuntimeMissingError):  # told when that command is asked for
                commands[name] = load_command(entry)
    for name, command in commands.items():
        command.configure(parsers.add_parser(name, help=command.help, description=command.help))
    args = parser.parse_args(arguments)
    return commands[args.command].run(args)


def told(error: Exception) -> int:
    """Says what went wrong in one line; the exit code."""
    if isinstance(error, TalkreelError):
        print(f"talkreel: {error}", file=sys.stderr)
        return error.exit_code
    if not isinstance(error, BrokenPipeError):  # nobody reads on, so there is nobody to tell
        print(f"talkreel: internal error: {type(error).__name__}: {error}", file=sys.stderr)
    return 1
