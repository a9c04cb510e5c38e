"""Known packs, and where their files come from. They are data: registry.json, or a file that the user names.

An entry is a pack's manifest with a section `origin`:

- `hub` and `revision`: a repository of the Hugging Face hub and its commit; or `url`: the address of a folder.
- `parts`: for a file that is stored in pieces, their endings in order: `<file>.part-<ending>`.

A pack that ships inside the package is `{"shipped": true}`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import PackError
from .manifest import FORMAT, Manifest, parse_manifest, read_json
from .names import check_file_name, check_word
from .places import revision_folder
from .section import Section

VARIABLE = "TALKREEL_REGISTRY"
"""Environment variable: a registry file instead of the shipped one."""

SHIPPED_REGISTRY = Path(__file__).with_name("registry.json")


@dataclass(frozen=True)
class Origin:
    """Where a pack's files are. Either `hub` ("owner/repository") with `revision`, or `url`, a folder's address or
    path; `parts`: endings of a file's pieces in order."""

    hub: str | None
    revision: str | None
    url: str | None
    parts: Mapping[str, tuple[str, ...]]

    def pieces(self, file: str) -> list[str]:
        """Names under which a file is stored, to be joined in order."""
        endings = self.parts.get(file)
        return [f"{file}.part-{ending}" for ending in endings] if endings else [file]

    @property
    def text(self) -> str:
        """For people: which place."""
        return f"hub {self.hub} at {self.revision}" if self.hub else str(self.url)


@dataclass(frozen=True)
class Entry:
    """A pack that can be pulled: its manifest, and the origin of its files."""

    manifest: Manifest
    origin: Origin

    @property
    def name(self) -> str:
        return self.manifest.name

    @property
    def revision(self) -> str:
        return self.manifest.revision

    @property
    def bytes(self) -> int:
        """Of all files."""
        return sum(file.bytes for file in self.manifest.files.values())

    @property
    def folder(self) -> Path:
        """Where it lies, or will."""
        return revision_folder(self.name, self.revision)

    @property
    def data(self) -> dict[str, Any]:
        """The JSON as it is written into the pack's folder."""
        return self.manifest.root.data


def read_entry(root: Section, default_url: str | None = None) -> Entry:
    """Check an entry. `default_url`: where the files are when it has no section `origin`.

    Raises:
        PackError: a field is missing or of the wrong kind, a name is not safe, no origin.
    """
    manifest = parse_manifest(root)
    check_word(manifest.name, "the pack's name")
    check_word(manifest.revision, f"revision of pack {manifest.name}")
    for name, file in manifest.files.items():
        check_file_name(name, manifest.name)
        if file.bytes < 0 or len(file.sha256) != 64:
            raise PackError(f"{root.path}.files.{name} needs its bytes and its SHA-256; the manifest is damaged")
    return Entry(manifest, _read_origin(root, manifest, default_url))


def _read_origin(root: Section, manifest: Manifest, default_url: str | None) -> Origin:
    if "origin" not in root:
        if default_url is None:
            raise root.fail("origin", "an object with hub and revision, or url")
        return Origin(None, None, default_url, {})
    s = root.section("origin")
    parts = {}
    for file in s.section("parts").data if "parts" in s else {}:
        endings = s.section("parts").texts(file)
        if file not in manifest.files or not endings:
            raise s.fail(f"parts.{file}", "a list of endings of a file that the manifest names")
        parts[file] = tuple(check_word(ending, f"{s.path}.parts.{file}: ending") for ending in endings)
    if "hub" in s:
        return Origin(s.text("hub"), s.text("revision"), None, parts)
    return Origin(None, None, s.text("url") if "url" in s or default_url is None else default_url, parts)


@dataclass(frozen=True)
class Registry:
    """`entries` by name; None for a pack that ships inside."""

    entries: Mapping[str, Entry | None]

    def entry(self, name: str) -> Entry:
        """An entry that can be pulled.

        Raises:
            PackError: no such name, or it ships inside.
        """
        if name not in self.entries:
            raise PackError(
                f"no pack {name!r} is known; known: {', '.join(self.entries)}; or give a manifest's address or folder"
            )
        found = self.entries[name]
        if found is None:
            raise PackError(f"pack {name} ships inside talkreel: there is nothing to pull or remove")
        return found


def read_registry(path: Path | None = None) -> Registry:
    """The registry in a file; None: the one of `TALKREEL_REGISTRY`, else the shipped one.

    Raises:
        PackError: unreadable, damaged, or of another format; an entry is.
    """
    path = path or Path(os.environ.get(VARIABLE) or SHIPPED_REGISTRY)
    root = Section(read_json(path), path.name)
    if root.integer("format") != FORMAT:
        raise PackError(f"{path} has format {root.data['format']}, this version reads {FORMAT}; update talkreel")
    entries: dict[str, Entry | None] = {}
    for name, section in root.sections("packs").items():
        entry = None if "shipped" in section and section.flag("shipped") else read_entry(section)
        if entry is not None and entry.name != name:
            raise section.fail("name", repr(name))
        entries[name] = entry
    return Registry(entries)
