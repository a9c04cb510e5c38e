"""The stand-in of the published pack in tests: opened, and changed copies of it."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from pipeline.packs.pack import Pack
from pipeline.packs.places import MANIFEST
from pipeline.runtime.models import Models
from pipeline.runtime.options import RuntimeOptions
from pipeline.runtime.session import Model

K = 21


def copy_pack(pack: Pack, folder: Path, files: Mapping[str, bytes], change: Callable[[dict[str, Any]], None]) -> Pack:
    """The pack in another folder: other or more files, hard links where it is the same, its manifest changed."""
    shutil.copytree(pack.folder, folder, copy_function=os.link)
    manifest = json.loads((folder / MANIFEST).read_text())
    for name, data in files.items():
        (folder / name).unlink(missing_ok=True)
        (folder / name).write_bytes(data)
        known = manifest["files"].get(name, {"sha256": "0" * 64, "licence": "MIT", "provenance": "a test"})
        manifest["files"][name] = {**known, "bytes": len(data)}
    change(manifest)
    (folder / MANIFEST).unlink()
    (folder / MANIFEST).write_text(json.dumps(manifest))
    return Pack.open(folder)


class FakeModels(Models):
    """A pack's models, some of them functions."""

    def __init__(self, pack: Pack, fakes: Mapping[str, Model]) -> None:
        super().__init__(pack, RuntimeOptions(threads=1))
        self.fakes = fakes

    def get(self, name: str, variant: str | None = None) -> Model:
        return self.fakes[name] if name in self.fakes else super().get(name, variant)
