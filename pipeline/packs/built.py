"""Builds of a pack for a machine: how they are named, where they lie, and which of them may be opened.

A build is a pack of its own in `<pack>/built/<preset>-<key>/`; builds of a pack that ships inside lie among the
pulled packs. It is opened as `NAME+cpu`, or, where the generators come from another pack, `NAME+OTHER+cpu`. The
key is a digest of the source's manifest (with all files' hashes), of the tools' code and of the options: a build
whose key is not what it would be now is out of date, and is not opened.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from ..errors import PackError
from .pack import Pack
from .places import MANIFEST, revision_folder
from .section import Section

BUILT = "built"
"""Folder of a pack's builds, inside the pack's."""

PRESETS = {
    "cpu": "float32 in the forms that are fastest on the CPU",
    "cuda": "half precision where it stays right, in the forms that are fastest on CUDA; float32 beside it",
    "int8": "8-bit convolutions where the picture allows it, else as cpu",
}
"""What a pack can be built for."""

JOINT = "+"

PACKAGE = Path(__file__).parents[1]
TOOLS = ("graphs", "packs/building")
"""Folders whose code decides what a build holds."""


@dataclass(frozen=True)
class BuildName:
    """`pack` (a name or a folder), for which preset, and the name of the pack whose generators it has, if another's."""

    pack: str
    preset: str
    generator: str | None = None

    @property
    def text(self) -> str:
        """`NAME+cpu`."""
        return JOINT.join(part for part in (self.pack, self.generator, self.preset) if part is not None)

    @property
    def stem(self) -> str:
        """How its folder's name begins."""
        return f"{self.generator}{JOINT}{self.preset}" if self.generator else self.preset

    @property
    def command(self) -> str:
        """What makes it."""
        other = f" --generator {self.generator}" if self.generator else ""
        return f"talkreel pack build {self.pack} --preset {self.preset}{other}"


def build_names(text: str) -> Iterator[BuildName]:
    """What builds a text may mean, the likelier first; none where it does not end in a preset."""
    pack, _, preset = text.rpartition(JOINT)
    if pack and preset in PRESETS:
        yield BuildName(pack, preset)
        pack, _, generator = pack.rpartition(JOINT)
        if pack and generator:
            yield BuildName(pack, preset, generator)


@cache
def tools_version() -> str:
    """A digest of the code that makes builds."""
    digest = hashlib.sha256()
    for folder in TOOLS:
        for path in sorted((PACKAGE / folder).rglob("*")):
            if path.is_file() and path.suffix != ".pyc":
                digest.update(f"{path.relative_to(PACKAGE).as_posix()}\n".encode())
                digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def source_digest(pack: Pack) -> str:
    """Of all that a pack's manifest says, its files' hashes included."""
    return hashlib.sha256(json.dumps(pack.manifest.root.data, sort_keys=True).encode()).hexdigest()


def key_of(sources: Mapping[str, str], options: Mapping[str, Any], tools: str | None = None) -> str:
    """The key of a build.

    Args:
        sources: digests of the packs it is made from, by name.
        options: what it was asked for.
        tools: None: the version at hand.
    """
    told = {"sources": dict(sources), "options": dict(options), "tools": tools or tools_version()}
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()[:16]


def builds_folder(source: Pack) -> Path:
    """Where a pack's builds lie."""
    ships = source.folder.resolve().parent == Path(__file__).resolve().parent
    return (revision_folder(source.name, source.revision) if ships else source.folder) / BUILT


@dataclass(frozen=True)
class Build:
    """A build that is there. `sources`: digests of packs by name."""

    name: BuildName
    folder: Path
    sources: Mapping[str, str]
    key: str
    current_key: str
    """What its key would be now, were its sources as they were."""

    def stale(self, find: Callable[[str], Pack | None]) -> str:
        """Why it is out of date; empty when it is not. `find`: a source by name, None when it is not here."""
        if self.current_key != self.key:
            return "it was made by another version of talkreel"
        for name, digest in self.sources.items():
            pack = find(name)
            if pack is not None and source_digest(pack) != digest:
                return f"{name} has changed since"
        return ""

    @property
    def bytes(self) -> int:
        """On the disk, without the files that it shares with its source."""
        files = [path.stat() for path in self.folder.rglob("*") if path.is_file()]
        return sum(found.st_size for found in files if found.st_nlink == 1)


def builds(source: Pack) -> list[Build]:
    """The builds of a pack that are there, whole, the newest first.

    Raises:
        PackError: a build's manifest is damaged.
    """
    folders = [path.parent for path in builds_folder(source).glob(f"[!.]*/{MANIFEST}")]
    folders.sort(key=lambda folder: ((folder / MANIFEST).stat().st_mtime_ns, folder.name), reverse=True)
    return [_read(source, folder) for folder in folders]


def _read(source: Pack, folder: Path) -> Build:
    try:
        data = json.loads((folder / MANIFEST).read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise PackError(f"{folder / MANIFEST} cannot be read ({error}); remove that folder and build again") from error
    s = Section(data, folder.name).section("build")
    sources = {name: str(digest) for name, digest in s.section("sources").data.items()}
    generator = s.text("generator") if "generator" in s else None
    return Build(
        BuildName(source.name, s.text("preset"), generator),
        folder,
        sources,
        s.text("key"),
        key_of(sources, s.section("options").data),
    )


def current_build(name: BuildName, source: Pack, find: Callable[[str], Pack | None]) -> Path:
    """The folder of the newest build of that name that is not out of date.

    Args:
        source: the pack that `name.pack` means.
        find: another pack by name, None when it is not here.

    Raises:
        PackError: there is none; the message has the command that makes it.
    """
    reasons = []
    for build in builds(source):
        if (build.name.preset, build.name.generator) == (name.preset, name.generator):
            stale = build.stale(lambda other: source if other == source.name else find(other))
            if not stale:
                return build.folder
            reasons.append(stale)
    if reasons:
        raise PackError(f"the build {name.text} is out of date: {reasons[0]}; build it again: {name.command}")
    raise PackError(f"pack {name.pack} is not built for {name.preset}; build it: {name.command}")
