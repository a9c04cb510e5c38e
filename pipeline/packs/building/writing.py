"""A build's folder: files that did not change as links, those that were made, and the manifest."""

from __future__ import annotations

import copy
import hashlib
import json
import os
import shutil
from pathlib import Path
from typing import Any

from ...errors import GraphError
from ...graphs.memory import MemoryOptions, peak_memory
from ..built import BuildName, key_of, source_digest, tools_version
from ..manifest import FileEntry
from ..pack import Pack
from ..places import MANIFEST
from .generators import Place
from .options import BuildOptions
from .recipes import Made

MEMORY_STEP = 1 << 20
"""Predictions are rounded up to this."""


class Writer:
    """Collects a build's parts in a folder that is renamed when it is whole."""

    def __init__(self, name: BuildName, pack: Pack, other: Pack | None, options: BuildOptions, folder: Path) -> None:
        self.name = name
        self.pack = pack
        self.other = other
        self.options = options
        self.folder = folder
        self.data: dict[str, Any] = copy.deepcopy(pack.manifest.root.data)
        self.models: dict[str, Any] = self.data["models"]
        self.files: dict[str, dict[str, Any]] = {}
        self.told: dict[str, Any] = {}
        self._brought: dict[str, Path] = {}

    @property
    def sources(self) -> dict[str, str]:
        """Digests of the packs that it is made from."""
        return {each.name: source_digest(each) for each in (self.pack, self.other) if each is not None}

    @property
    def key(self) -> str:
        """See `built.key_of`."""
        return key_of(self.sources, self.options.to_json())

    def stay(self, model: str, why: str) -> None:
        """A model keeps its file."""
        self.told[model] = {"stays": why}

    def replace(self, place: Place, made: Made) -> None:
        """A model's new files and its entry."""
        entry = self.models[place.name] = place.entry()
        entry["file"] = self._relative(made.file)
        entry.pop("variants", None)
        if made.variants:
            entry["variants"] = {variant: self._relative(path) for variant, path in made.variants.items()}
        try:
            predicted = peak_memory(made.file, MemoryOptions(threads=1, pattern=False)).session
            entry["memory_bytes"] = -(-predicted // MEMORY_STEP) * MEMORY_STEP
        except GraphError as error:  # an operator of the runtime's own whose shapes are not known
            made.steps.append(f"memory not predicted: {error}")
        source = place.pack.manifest.files[place.spec.file]
        for path in (made.file, *made.variants.values(), *made.kept):
            for each in (path, path.with_name(f"{path.name}.data")):
                if each.is_file():
                    self.files[self._relative(each)] = self._entry(each, source, place)
        self.told[place.name] = {"from": f"{place.pack.name}: {place.spec.file}", "steps": made.steps}

    def bring(self, model: str) -> None:
        """A model of the other pack comes along as it is, with its file."""
        assert self.other is not None
        file = self.other.manifest.model(model).file
        named = f"{self.other.name}/{file}"  # where this pack has no file of its own
        self.models[model] = {**copy.deepcopy(self.other.section("models").data[model]), "file": named}
        self.models[model].pop("variants", None)
        self.files[named] = dict(self.other.section("files").data[file])
        self._brought[named] = self.other.path(file)
        self.told[model] = {"from": f"{self.other.name}: {file}", "steps": []}

    def finish(self) -> Path:
        """Link what did not change, drop what nothing names, write the manifest; its path."""
        unchanged = self._unchanged()
        for name, source in {**{name: self.pack.path(name) for name in unchanged}, **self._brought}.items():
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            _link(source, path)
        self.files |= unchanged
        for path in sorted(self.folder.rglob("*")):
            if path.is_file() and self._relative(path) not in self.files:
                path.unlink()
        self._describe()
        path = self.folder / MANIFEST
        path.write_text(json.dumps(self.data, indent=1, ensure_ascii=False) + "\n", "utf-8")
        return path

    def _unchanged(self) -> dict[str, dict[str, Any]]:
        """Files of the source, but for graphs that no model names any more."""
        graphs = {file for spec in self.pack.manifest.models.values() for file in (spec.file, *spec.variants.values())}
        named = {
            file for entry in self.models.values() for file in (entry["file"], *entry.get("variants", {}).values())
        }
        return {name: entry for name, entry in self.data["files"].items() if name in named or name not in graphs}

    def _describe(self) -> None:
        self.data["name"] = self.name.text
        self.data["files"] = {name: self.files[name] for name in sorted(self.files)}
        self.data.pop("origin", None)  # addresses of the pack that was pulled
        if self.other is not None:
            licence, theirs = self.data["licence"], self.other.manifest
            if theirs.licence not in licence["summary"]:
                licence["summary"] += f"; generators: {theirs.licence}"
            licence["commercial_use"] = licence["commercial_use"] and theirs.commercial_use
        self.data["build"] = {
            "preset": self.options.preset,
            "generator": self.name.generator,
            "key": self.key,
            "sources": self.sources,
            "tools": tools_version(),
            "options": self.options.to_json(),
            "models": self.told,
        }

    def _entry(self, path: Path, source: FileEntry, place: Place) -> dict[str, Any]:
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        made = f"made by talkreel pack build --preset {self.options.preset} (tools {tools_version()[:12]})"
        origin = f"{place.spec.file} of pack {place.pack.name} (SHA-256 {source.sha256})"
        return {
            "bytes": path.stat().st_size,
            "sha256": digest,
            "licence": source.licence,
            "provenance": f"{made} from {origin}; {source.provenance}",
        }

    def _relative(self, path: Path) -> str:
        return path.relative_to(self.folder).as_posix()


def _link(source: Path, path: Path) -> None:
    """The same file under another name; a copy where the file system has no links, or on another one."""
    try:
        os.link(source, path)
    except OSError:
        shutil.copy2(source, path)
