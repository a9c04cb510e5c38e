"""A pack: a folder of models with a manifest, and how its parts are opened."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import PackError
from .graph_check import check_graph
from .manifest import Manifest, ModelSpec, read_manifest
from .places import MANIFEST, packs_root
from .section import Section


@dataclass(frozen=True)
class Pack:
    """A folder with a manifest that was read and checked."""

    folder: Path
    manifest: Manifest

    @classmethod
    def open(cls, folder: Path) -> Pack:
        """Read the manifest; sizes of the files are checked, hashes only by `verify`.

        Raises:
            PackError: no manifest, a manifest of another format, a file missing or of another size.
        """
        pack = cls(folder, read_manifest(folder / MANIFEST))
        for name, entry in pack.manifest.files.items():
            path = pack.path(name)
            size = path.stat().st_size if path.is_file() else None
            if size != entry.bytes:
                state = "is missing" if size is None else f"has {size} bytes instead of {entry.bytes}"
                raise PackError(f"pack {pack.name}: {path} {state}; {pack._cure}")
        return pack

    @property
    def name(self) -> str:
        return self.manifest.name

    @property
    def revision(self) -> str:
        return self.manifest.revision

    def path(self, name: str) -> Path:
        """Path of a file of the pack; it may not lie outside of the folder.

        Raises:
            PackError: the name leads out of the folder, or is not in the manifest.
        """
        path = (self.folder / name).resolve()
        if not path.is_relative_to(self.folder.resolve()):
            raise PackError(f"pack {self.name}: file {name!r} lies outside of the pack; do not use this pack")
        if name not in self.manifest.files:
            raise PackError(f"pack {self.name}: file {name!r} has no entry with size and hash; do not use this pack")
        return path

    def model_path(self, spec: ModelSpec, variant: str | None = None) -> Path:
        """Path of a model's graph, checked as `check_graph` has it: whoever makes a session gets it here.

        Raises:
            PackError: the graph is not what the manifest says, or its weights lie outside of the pack.
        """
        return check_graph(self, spec.file if variant is None else spec.variants[variant], spec)

    def floats(self, name: str) -> NDArray[np.float32]:
        """A file of little-endian float32 values: [n]."""
        return np.fromfile(self.path(name), "<f4").astype(np.float32)

    def json(self, name: str) -> Any:
        return json.loads(self.path(name).read_text("utf-8"))

    def section(self, name: str) -> Section:
        """A part of the manifest that some code reads with its own spec class."""
        return self.manifest.root.section(name)

    def verify(self) -> None:
        """Hash every file.

        Raises:
            PackError: the SHA-256 of files differs; all are named.
        """
        damaged = []
        for name, entry in self.manifest.files.items():
            with self.path(name).open("rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
            if digest != entry.sha256:
                damaged.append(f"{self.path(name)} is damaged (SHA-256 {digest[:12]}…)")
        if damaged:
            raise PackError(f"pack {self.name}: {', '.join(damaged)}; {self._cure}")

    @property
    def _cure(self) -> str:
        """How its files come back."""
        if self.folder.is_relative_to(packs_root()):
            return f"fetch it again: talkreel pack pull {self.name}"
        return "fetch or install the pack again"

    @cached_property
    def identity(self) -> str:
        """Name, revision and a digest of the manifest with all files' hashes: what an artifact made with the pack
        depends on. Where the files came from is left out: a mirror's pack is the same."""
        content = {name: value for name, value in self.manifest.root.data.items() if name != "origin"}
        digest = hashlib.sha256(json.dumps(content, sort_keys=True).encode())
        return f"{self.name}@{self.revision}+{digest.hexdigest()[:12]}"
