"""Finding a pack: inside the package, among the pulled ones, or in a folder that the user names."""

from __future__ import annotations

from pathlib import Path

from ..errors import PackError
from .built import Build, build_names, builds, current_build
from .pack import Pack
from .places import MANIFEST, pulled_names, pulled_revisions
from .registry import Registry, read_registry

SHIPPED = Path(__file__).parent
"""Packs that ship with the package, a folder each."""

DEFAULT_PACK = "embedded"
FACES_PACK = "faces"
"""The face detector and landmark model; every pack's crop is found with it."""


def shipped_packs() -> list[str]:
    """Names of the packs inside the package."""
    return sorted(path.parent.name for path in SHIPPED.glob(f"*/{MANIFEST}"))


def open_pack(name_or_folder: str = DEFAULT_PACK, registry: Registry | None = None) -> Pack:
    """The pack of a name, or in a folder.

    Args:
        name_or_folder: as `find_pack` has it. registry: known packs; None = as `read_registry` finds them.

    Raises:
        PackError: nothing is there, or the pack does not open.
    """
    return Pack.open(find_pack(name_or_folder, registry))


def find_pack(name_or_folder: str, registry: Registry | None = None) -> Path:
    """The folder of a pack: a shipped one by its name, a pulled one by its name or NAME@REVISION, a build of one as
    NAME+PRESET (`built`), or that folder.

    Of a pulled pack that the registry knows, the registry's revision is meant; of others, the one pulled last.

    Raises:
        PackError: nothing is there, or it is known and not pulled or not built yet.
    """
    if (build := _build(name_or_folder, registry)) is not None:
        return build
    name, _, revision = name_or_folder.partition("@")
    if not revision and (SHIPPED / name / MANIFEST).is_file():
        return SHIPPED / name
    here = pulled_revisions(name)
    if here and not revision:
        entry = (registry or read_registry()).entries.get(name)
        revision = entry.revision if entry else here[0].name
    for folder in here:
        if folder.name == revision:
            return folder
    if (Path(name_or_folder) / MANIFEST).is_file():
        return Path(name_or_folder)
    raise _missing(name_or_folder, name, revision, [folder.name for folder in here], registry or read_registry())


def _build(text: str, registry: Registry | None) -> Path | None:
    """The folder of the build that a text names; None where it names none, or a folder."""
    if (Path(text) / MANIFEST).is_file():
        return None
    names = list(build_names(text))
    for name in names:
        source = _here(name.pack, registry)
        if source is not None:
            return current_build(name, source, lambda other: _here(other, registry))
    return current_build(names[0], open_pack(names[0].pack, registry), lambda other: None) if names else None


def builds_named(text: str, registry: Registry | None = None) -> list[Build]:
    """Every build of that name that is here, those that are out of date, too.

    Raises:
        PackError: a build's manifest is damaged.
    """
    sources = [(name, _here(name.pack, registry)) for name in build_names(text)]
    pairs = [(name, build) for name, source in sources if source is not None for build in builds(source)]
    return [
        build for name, build in pairs if (build.name.preset, build.name.generator) == (name.preset, name.generator)
    ]


def stale(build: Build, source: Pack, registry: Registry | None = None) -> str:
    """Why a build of a pack is out of date; empty when it is not."""
    return build.stale(lambda other: source if other == source.name else _here(other, registry))


def _here(name: str, registry: Registry | None) -> Pack | None:
    try:
        return open_pack(name, registry)
    except PackError:
        return None


def _missing(asked: str, name: str, revision: str, here: list[str], registry: Registry) -> PackError:
    if here:
        others = ", ".join(f"{name}@{other}" for other in here)
        return PackError(
            f"pack {name} is not here in revision {revision}; pull it: talkreel pack pull {name}, or use {others}"
        )
    if asked in registry.entries:
        return PackError(f"pack {name} is not here yet; pull it: talkreel pack pull {name}")
    known = dict.fromkeys([n for n in shipped_packs() if n != FACES_PACK] + pulled_names() + list(registry.entries))
    return PackError(f"no pack {asked!r}: not a folder with a {MANIFEST}, and not one of: {', '.join(known)}")
