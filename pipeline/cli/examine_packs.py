"""What doctor says of packs: those that ship inside, those that were pulled, and what was built of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

from ..errors import PackError
from ..packs.built import builds
from ..packs.pack import Pack
from ..packs.places import pulled_names, pulled_revisions
from ..packs.registry import Registry
from ..packs.store import find_pack, open_pack, shipped_packs, stale

Look = Callable[[], str]
"""What there is to say; raises PackError where a pack cannot be used."""


def pack_looks(registry: Registry) -> Iterator[tuple[str, Look]]:
    """Every pack that is here, by the name that `--pack` takes, and its builds after it; how each is looked at.

    Of pulled packs and builds sizes are compared, and every graph with the manifest; their hashes, which take long,
    are for `talkreel pack verify`.
    """
    for name in shipped_packs():
        yield name, partial(_shipped, name)
        yield from _builds(name, find_pack(name))
    for name in pulled_names():
        for folder in pulled_revisions(name):
            label = name if _meant(name, registry) == folder else f"{name}@{folder.name}"
            yield label, partial(_usable, folder)
            yield from _builds(label, folder)


def _meant(name: str, registry: Registry) -> Path | None:
    """What is opened where no revision is named."""
    try:
        return find_pack(name, registry)
    except PackError:
        return None


def _builds(label: str, folder: Path) -> Iterator[tuple[str, Look]]:
    try:
        source = Pack.open(folder)
    except PackError:  # said of the source
        return
    try:
        found = builds(source)
    except PackError as error:
        yield f"builds of {label}", partial(_refuse, error)
        return
    told = set()
    for build in found:
        name = replace(build.name, pack=label)
        reason = stale(build, source)
        if not reason:
            yield name.text, partial(_usable, build.folder)
        elif name not in told:
            yield name.text, partial(str, f"out of date: {reason}; build it again: {name.command}")
        told.add(name)


def _refuse(error: PackError) -> str:
    raise error


def _shipped(name: str) -> str:
    pack = open_pack(name)
    pack.verify()
    return _facts(pack, "hashes good")


def _usable(folder: Path) -> str:
    pack = Pack.open(folder)
    for spec in pack.manifest.models.values():
        for variant in (None, *spec.variants):
            pack.model_path(spec, variant)
    return _facts(pack, "usable")


def _facts(pack: Pack, state: str) -> str:
    size = sum(entry.bytes for entry in pack.manifest.files.values())
    return f"revision {pack.revision}, {size / 1e6:.1f} MB, {state}, {pack.manifest.licence}"
