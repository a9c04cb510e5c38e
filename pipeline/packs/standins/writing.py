"""Writing stand-ins: as the folder of a pack, or as the tree of files that a hub serves."""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from ..places import MANIFEST
from ..registry import SHIPPED_REGISTRY
from .contents import contents
from .widths import PUBLISHED, REDUCED

OnFile = Callable[[str, int, int], None]
"""Told of a file's name, its bytes, and the bytes of the published one."""


def write_pack(
    folder: Path,
    name: str = "timeline-studio",
    *,
    small: bool = False,
    seed: int = 0,
    registry: Path = SHIPPED_REGISTRY,
    on_file: OnFile = lambda name, size, published: None,
) -> Path:
    """Write one pack's stand-in as a folder that `open_pack` opens; returns the folder.

    Args:
        small: narrow networks, for tests; tensors, names and file count stay.
        seed: of all weights.
        registry: has the entry that becomes the manifest, with other sizes and hashes.

    Raises:
        KeyError: no stand-in of that name, or not in the registry.
    """
    entry = _entries(registry)[name]
    for file, data in _make(name, entry, small, seed, on_file):
        _write(folder / file, data)
    (folder / MANIFEST).write_text(json.dumps(entry, indent=1, ensure_ascii=False) + "\n", "utf-8")
    return folder


def write_hub(
    root: Path,
    names: Sequence[str] = ("timeline-studio", "liveportrait-onnx"),
    *,
    small: bool = False,
    seed: int = 0,
    registry: Path = SHIPPED_REGISTRY,
    on_file: OnFile = lambda name, size, published: None,
) -> dict[str, Any]:
    """Write packs' stand-ins under the hub's addresses, `<root>/<repository>/resolve/<revision>/<file>`, in as many
    parts as published, so that any server of static files is a hub of them.

    Args: as of `write_pack`; `names`: which packs.

    Returns:
        The registry that belongs to it: the given one but for these files' sizes and hashes.
    """
    data = json.loads(registry.read_text("utf-8"))
    for name in names:
        entry = data["packs"][name]
        source = entry["origin"]
        place = root / source["hub"] / "resolve" / source["revision"]
        parts: dict[str, list[str]] = source.get("parts", {})
        for file, content in _make(name, entry, small, seed, on_file):
            endings = parts.get(file)
            if endings is None:
                _write(place / file, content)
                continue
            length = -(-len(content) // len(endings))
            for index, ending in enumerate(endings):
                _write(place / f"{file}.part-{ending}", content[index * length : (index + 1) * length])
    return dict(data)


def _entries(registry: Path) -> dict[str, Any]:
    return dict(copy.deepcopy(json.loads(registry.read_text("utf-8"))["packs"]))


def _make(name: str, entry: dict[str, Any], small: bool, seed: int, on_file: OnFile) -> Iterator[tuple[str, bytes]]:
    """Each file and its bytes, one in memory at a time; the entry gets their sizes and hashes."""
    for file, make in contents(REDUCED if small else PUBLISHED, seed)[name].items():
        made = make()
        data = made if isinstance(made, bytes) else made.SerializeToString(deterministic=True)
        del made
        facts = entry["files"][file]
        on_file(file, len(data), facts["bytes"])
        facts |= {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
        yield file, data


def _write(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
