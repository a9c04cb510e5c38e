"""A pack of some hundred kB, stored as the published ones are, and `talkreel pack` run against a test hub."""

from __future__ import annotations

import hashlib
import json
import os
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.hub_server import HubServer

ROOT = Path(__file__).parents[3]
REPOSITORY, REVISION = "someone/tiny-pack", "0123abc"
PARTS = {"speech/encoder.onnx": ["aa", "ab", "ac"], "generator.onnx": ["aa", "ab"]}


def tiny_files() -> dict[str, bytes]:
    """Seeded bytes; sizes that no block divides."""
    numbers = random.Random(5)
    sizes = {"speech/encoder.onnx": 180_001, "generator.onnx": 120_007, "denoiser.onnx": 40_003, "table.bin": 408}
    return {name: numbers.randbytes(size) for name, size in sizes.items()}


FILES = tiny_files()
TOTAL = sum(map(len, FILES.values()))


def tiny_entry(**changes: Any) -> dict[str, Any]:
    """The registry's entry; `changes` replace fields, None removes one."""
    entry: dict[str, Any] = {
        "format": 1,
        "name": "tiny",
        "revision": REVISION,
        "licence": {"summary": "MIT", "commercial_use": True},
        "origin": {"hub": REPOSITORY, "revision": REVISION, "parts": PARTS},
        "files": {
            name: {
                "bytes": len(data),
                "sha256": hashlib.sha256(data).hexdigest(),
                "licence": "MIT",
                "provenance": "seeded",
            }
            for name, data in FILES.items()
        },
        "models": {},
    }
    return {key: value for key, value in (entry | changes).items() if value is not None}


def serve_tiny(hub: HubServer) -> None:
    """Put the files on the hub, in parts where they are stored so."""
    for name, data in FILES.items():
        if name in PARTS:
            hub.add_parts(REPOSITORY, REVISION, name, data, PARTS[name])
        else:
            hub.add(REPOSITORY, REVISION, name, data)


class User:
    """Somebody at a command line with a home, a registry and a hub of their own."""

    def __init__(self, home: Path, hub: HubServer) -> None:
        self.packs = home / "packs"
        self.registry = home / "registry.json"
        self.know(tiny_entry())
        kept = {k: v for k, v in os.environ.items() if not k.lower().endswith("_proxy") and k[:3] not in ("HF_", "TAL")}
        self.env = kept | {"HOME": str(home), "HF_ENDPOINT": hub.url, "TALKREEL_PACKS": str(self.packs)}

    def know(self, entry: dict[str, Any]) -> None:
        """Have that entry in the registry."""
        self.registry.write_text(json.dumps({"format": 1, "packs": {entry["name"]: entry}}))

    def start(self, *arguments: str, limit: Callable[[], None] | None = None) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "pipeline", "pack", *arguments], env=self.env, cwd=ROOT, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, preexec_fn=limit,
        )  # fmt: skip

    def run(self, *arguments: str, limit: Callable[[], None] | None = None) -> subprocess.CompletedProcess[str]:
        process = self.start(*arguments, limit=limit)
        out, err = process.communicate(timeout=120)
        return subprocess.CompletedProcess(arguments, process.returncode, out, err)

    def pull(self, *arguments: str, limit: Callable[[], None] | None = None) -> subprocess.CompletedProcess[str]:
        return self.run("pull", "tiny", "--registry", str(self.registry), *arguments, limit=limit)

    @property
    def folder(self) -> Path:
        return self.packs / "tiny" / REVISION

    def leftovers(self) -> list[Path]:
        """Everything below the folder of packs but the locks."""
        return [path for path in self.packs.rglob("*") if ".locks" not in path.parts]

    def check_whole(self) -> None:
        """Every file is what was served, and nothing else is left."""
        for name, data in FILES.items():
            assert (self.folder / name).read_bytes() == data, name
        here = {str(path.relative_to(self.folder)) for path in self.folder.rglob("*") if path.is_file()}
        assert here == {*FILES, "manifest.json", "pulled.json"}
        assert [path.name for path in self.folder.parent.iterdir()] == [REVISION]
