"""`talkreel pack path`."""

from __future__ import annotations

import argparse

from .arguments import add_registry, registry_of


class PathCommand:
    """Print the folder of a pack that is here, for scripts."""

    help = "the folder of a pack"

    def configure(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("pack", metavar="PACK", help="name, NAME@REVISION or folder")
        add_registry(parser)

    def run(self, args: argparse.Namespace) -> int:
        from ...packs.store import find_pack

        print(find_pack(args.pack, registry_of(args)))
        return 0
