"""`talkreel pack remove`."""

from __future__ import annotations

import argparse

from .arguments import add_json, megabytes, show


class RemoveCommand:
    """Remove a pulled pack with what was built from it and what is left of broken-off pulls."""

    help = "remove a pulled pack, or a build"

    def configure(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            "pack", metavar="PACK", help="name (every revision), NAME@REVISION, or NAME+PRESET for a build alone"
        )
        add_json(parser)

    def run(self, args: argparse.Namespace) -> int:
        from ...packs.removal import remove

        removed = remove(args.pack)
        data = {"removed": [str(folder) for folder in removed.folders], "bytes": removed.bytes}
        show(args, data, f"{megabytes(removed.bytes)} freed: {', '.join(map(str, removed.folders))}")
        return 0
