"""What packs there are: shipped, pulled, and those that could be pulled."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from .built import builds
from .manifest import Manifest, read_manifest
from .pack import Pack
from .places import MANIFEST, incoming_folder, pulled_names, pulled_revisions
from .registry import Entry, Registry
from .store import FACES_PACK, SHIPPED, shipped_packs, stale


@dataclass(frozen=True)
class Listed:
    """A pack and where it is. `state`: "shipped", "pulled", "built" (a build of one), "stale" (a build that is out of
    date), "begun" (a pull was broken off) or "known" (can be pulled); `folder` is None for the last two."""

    manifest: Manifest
    state: str
    folder: Path | None
    entry: Entry | None

    @property
    def bytes(self) -> int:
        """Of all files."""
        return sum(file.bytes for file in self.manifest.files.values())


def list_packs(registry: Registry) -> list[Listed]:
    """Every pack that `--pack` takes by name or that can be pulled; a revision each.

    Raises:
        PackError: a manifest that is here is damaged.
    """
    found = [
        Listed(read_manifest(SHIPPED / name / MANIFEST), "shipped", SHIPPED / name, None)
        for name in shipped_packs()
        if name != FACES_PACK
    ]
    for name in pulled_names():
        for folder in pulled_revisions(name):
            entry = registry.entries.get(name)
            same = entry if entry and entry.revision == folder.name else None
            found.append(Listed(read_manifest(folder / MANIFEST), "pulled", folder, same))
    found = [each for one in found for each in (one, *_builds(one, registry))]
    here = {(one.manifest.name, one.manifest.revision) for one in found}
    for name, entry in registry.entries.items():
        if entry is not None and (name, entry.revision) not in here:
            state = "begun" if incoming_folder(entry.folder).is_dir() else "known"
            found.append(Listed(entry.manifest, state, None, entry))
    return found


def _builds(one: Listed, registry: Registry) -> list[Listed]:
    """The builds of a pack that is here."""
    assert one.folder is not None
    source = Pack(one.folder, one.manifest)
    made = []
    for build in builds(source):
        state = "stale" if stale(build, source, registry) else "built"
        made.append(Listed(read_manifest(build.folder / MANIFEST), state, build.folder, None))
    return made
