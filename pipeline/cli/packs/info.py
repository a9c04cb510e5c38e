"""`talkreel pack info`."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from .arguments import add_json, add_registry, megabytes, registry_of, show

if TYPE_CHECKING:
    from ...packs.manifest import Manifest
    from ...packs.registry import Entry


class InfoCommand:
    """Say what a pack holds, from where and under which licence; it need not be here yet."""

    help = "what a pack holds, from where, under which licence"

    def configure(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("pack", metavar="PACK", help="name, NAME@REVISION or folder")
        add_registry(parser)
        add_json(parser)

    def run(self, args: argparse.Namespace) -> int:
        from ...packs.pack import Pack
        from ...packs.store import find_pack

        registry = registry_of(args)
        entry = registry.entries.get(args.pack)
        if entry is not None and not entry.folder.is_dir():
            manifest, folder = entry.manifest, None
        else:
            pack = Pack.open(find_pack(args.pack, registry))
            manifest, folder = pack.manifest, str(pack.folder)
        show(args, {"folder": folder, "manifest": manifest.root.data}, _text(manifest, folder, entry))
        return 0


def _text(manifest: Manifest, folder: str | None, entry: Entry | None) -> str:
    use = "commercial use allowed" if manifest.commercial_use else "NO commercial use"
    lines = [f"{manifest.name}, revision {manifest.revision}"]
    if "about" in manifest.root:
        lines.append(manifest.root.text("about"))
    lines += [
        f"licence   {manifest.licence}; {use}",
        f"folder    {folder or f'not here; talkreel pack pull {manifest.name}'}",
    ]
    if entry is not None:
        lines.append(f"origin    {entry.origin.text}")
    lines.append(f"files     {megabytes(sum(file.bytes for file in manifest.files.values()))}")
    for name, file in manifest.files.items():
        lines.append(f"  {name}  {megabytes(file.bytes)}  {file.licence}; {file.provenance}")
    for name, preset in manifest.presets.items():
        lines.append(f"preset    {name}: {preset.size} px")
    return "\n".join(lines)
