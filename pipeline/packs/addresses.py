"""A pack that is not in the registry: by the address or the folder of its manifest."""

from __future__ import annotations

import json
from pathlib import Path
from urllib.parse import urljoin

from ..errors import PackError
from .manifest import read_json
from .places import MANIFEST, RECORD, pulled_revisions
from .registry import Entry, Origin, Registry, read_entry
from .section import Section
from .storage import is_web
from .store import shipped_packs
from .web import Web

LARGEST_MANIFEST = 16 << 20
"""Bytes."""


def find_entry(pack: str, registry: Registry) -> Entry:
    """The entry of a known pack, or of a manifest elsewhere; its files lie beside it unless it says otherwise.

    Args:
        pack: a name, an address (http, https) of a manifest or of its folder, or such a path. The name may be that
            of a pack that was pulled from an address before.

    Raises:
        PackError: none is there, or it is damaged. DownloadError: not to be had.
    """
    if is_web(pack):
        entry = _web_entry(pack if pack.endswith(".json") else pack.rstrip("/") + "/" + MANIFEST)
    elif pack not in registry.entries and (path := Path(pack)).exists():
        path = path / MANIFEST if path.is_dir() else path
        entry = read_entry(Section(read_json(path), str(path)), default_url=str(path.parent.absolute()))
    elif pack not in registry.entries and (here := pulled_revisions(pack)):
        return _pulled_entry(here[0])
    else:
        return registry.entry(pack)
    _check_name(entry, registry)
    return entry


def _check_name(entry: Entry, registry: Registry) -> None:
    """Raises PackError: under its name another pack is known, for which it would be taken."""
    known = registry.entries.get(entry.name)
    if entry.name in shipped_packs() or (
        known is not None and known.revision == entry.revision and known.manifest.files != entry.manifest.files
    ):
        raise PackError(
            f"{entry.manifest.root.path} calls itself {entry.name}, and that is another pack; "
            "give it another name or revision in its manifest"
        )


def _pulled_entry(folder: Path) -> Entry:
    """The entry of a pack that is here, with the place that it came from."""
    record = Section(read_json(folder / RECORD), f"{folder.name}/{RECORD}")
    place = record.text("origin")
    entry = read_entry(Section(read_json(folder / MANIFEST), folder.parent.name), default_url=place)
    return entry if entry.origin.hub else Entry(entry.manifest, Origin(None, None, place, entry.origin.parts))


def _web_entry(address: str) -> Entry:
    try:
        data = json.loads(Web().text(address, LARGEST_MANIFEST))
    except ValueError as error:
        raise PackError(f"{address} is not JSON ({error}); give the address of a pack's manifest.json") from error
    entry = read_entry(Section(data, address), default_url=urljoin(address, "."))
    url = entry.origin.url
    if url is None:
        return entry
    # Relative to the manifest: what came from the web names no folder of this machine.
    origin = Origin(None, None, urljoin(address, url), entry.origin.parts)
    return Entry(entry.manifest, origin)
