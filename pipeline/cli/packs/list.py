"""`talkreel pack list`."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from .arguments import add_json, add_registry, megabytes, registry_of, show

if TYPE_CHECKING:
    from ...packs.catalogue import Listed


class ListCommand:
    """List the packs that are here, and the known ones that can be pulled."""

    help = "which packs are here, and which can be pulled"

    def configure(self, parser: argparse.ArgumentParser) -> None:
        add_registry(parser)
        add_json(parser)

    def run(self, args: argparse.Namespace) -> int:
        from ...packs.catalogue import list_packs

        found = list_packs(registry_of(args))
        show(args, [_data(one) for one in found], "\n".join(_line(one) for one in found))
        return 0


def _data(one: Listed) -> dict[str, object]:
    return {
        "name": one.manifest.name,
        "revision": one.manifest.revision,
        "state": one.state,
        "bytes": one.bytes,
        "licence": one.manifest.licence,
        "commercial_use": one.manifest.commercial_use,
        "folder": str(one.folder) if one.folder else None,
    }


def _line(one: Listed) -> str:
    state = {"known": "can be pulled", "begun": "pull begun"}.get(one.state, one.state)
    use = "" if one.manifest.commercial_use else ", no commercial use"
    size = megabytes(one.bytes)
    return (
        f"{one.manifest.name:<18} {one.manifest.revision[:12]:<12} {state:<13} {size:>11}  {one.manifest.licence}{use}"
    )
