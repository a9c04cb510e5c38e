"""`talkreel`: finds the commands, runs one, turns errors into one line and an exit code."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from ..errors import TalkreelError
from ..report import version_of
from .command import find_commands, load_command

INTERRUPTED = 130
"""Exit code after Ctrl-C, as shells have it."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code: 0, 2 for bad usage or input, 1 for a fault of ours."""
    parser = argparse.ArgumentParser(
        prog="talkreel", description="A portrait and a voice recording become a WebM of that person speaking."
    )
    parser.add_argument("--version", action="version", version=f"talkreel {version_of('talkreel')}")
    parsers = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    found = find_commands()
    arguments = sys.argv[1:] if arguments is None else arguments
    # Only what is asked for is loaded: a film in one process does not wait for the fleet's imports.
    wanted = [arguments[0]] if arguments and arguments[0] in found else list(found)
    commands = {name: load_command(found[name]) for name in wanted}
    for name in found:
        if command := commands.get(name):
            command.configure(parsers.add_parser(name, help=command.help, description=command.help))
    args = parser.parse_args(arguments)
    try:
        return commands[args.command].run(args)
    except TalkreelError as error:
        print(f"talkreel: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("talkreel: interrupted", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        return 1
    except Exception as error:
        print(f"talkreel: internal error: {type(error).__name__}: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
