"""Where pulled packs lie: `<root>/<name>/<revision>/`, with a manifest and the files as it names them.

Beside it lies `.<revision>/`, what is being pulled: nothing but a whole, hashed pack ever has the name without the
dot.
"""

from __future__ import annotations

import os
from pathlib import Path

from .names import is_word

VARIABLE = "TALKREEL_PACKS"
"""Environment variable: the folder of pulled packs."""

MANIFEST = "manifest.json"
"""A pack's manifest, in its folder."""

RECORD = "pulled.json"
"""What a pull writes beside the manifest: when, from where, under which licence."""


def packs_root() -> Path:
    """The folder of pulled packs: `TALKREEL_PACKS`, else talkreel/packs in the user's cache (XDG)."""
    named = os.environ.get(VARIABLE)
    if named:
        return Path(named).expanduser()
    cache = os.environ.get("XDG_CACHE_HOME")
    return (Path(cache) if cache else Path.home() / ".cache") / "talkreel" / "packs"


def revision_folder(name: str, revision: str) -> Path:
    """Where one revision of a pack lies, or will."""
    return packs_root() / name / revision


def incoming_folder(folder: Path) -> Path:
    """Where a pack is gathered that will lie in that folder."""
    return folder.with_name(f".{folder.name}")


def pulled_revisions(name: str) -> list[Path]:
    """Folders of the revisions that are here, the one pulled last first."""
    if not is_word(name):
        return []
    found = [path.parent for path in (packs_root() / name).glob(f"[!.]*/{MANIFEST}")]
    return sorted(found, key=lambda folder: ((folder / MANIFEST).stat().st_mtime_ns, folder.name), reverse=True)


def pulled_names() -> list[str]:
    """Names of the packs of which a revision is here."""
    root = packs_root()
    return sorted(path.name for path in root.iterdir() if pulled_revisions(path.name)) if root.is_dir() else []
