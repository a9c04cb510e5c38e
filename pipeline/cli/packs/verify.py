"""`talkreel pack verify`."""

from __future__ import annotations

import argparse

from .arguments import add_json, add_registry, megabytes, registry_of, show


class VerifyCommand:
    """Hash every file of a pack, or of all that are here, against its manifest; exit code 2 when one is damaged."""

    help = "hash every file of packs that are here"

    def configure(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            "packs", metavar="PACK", nargs="*", help="name, NAME@REVISION or folder; default: all that are here"
        )
        add_registry(parser)
        add_json(parser)

    def run(self, args: argparse.Namespace) -> int:
        from ...packs.catalogue import list_packs
        from ...packs.pack import Pack
        from ...packs.store import find_pack

        registry = registry_of(args)
        if args.packs:
            folders = [find_pack(pack, registry) for pack in args.packs]
        else:
            folders = [one.folder for one in list_packs(registry) if one.folder]
        data, lines = [], []
        for folder in folders:
            pack = Pack.open(folder)
            pack.verify()
            size = sum(file.bytes for file in pack.manifest.files.values())
            data.append({"name": pack.name, "revision": pack.revision, "folder": str(folder), "bytes": size})
            lines.append(f"{pack.name} {pack.revision[:12]}: every hash of {megabytes(size)} is right")
        show(args, data, "\n".join(lines))
        return 0
