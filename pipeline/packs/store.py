"""Where packs lie: inside the package, or in a folder that the user names."""

from __future__ import annotations

from pathlib import Path

from ..errors import PackError
from .pack import MANIFEST, Pack

SHIPPED = Path(__file__).parent
"""Packs that ship with the package, a folder each."""

DEFAULT_PACK = "embedded"
FACES_PACK = "faces"
"""The face detector and landmark model; every pack's crop is found with it."""


def shipped_packs() -> list[str]:
    """Names of the packs inside the package."""
    return sorted(path.parent.name for path in SHIPPED.glob(f"*/{MANIFEST}"))


def open_pack(name_or_folder: str = DEFAULT_PACK) -> Pack:
    """A shipped pack by its name, or the pack in a folder.

    Raises:
        PackError: neither is there, or the pack does not open.
    """
    for folder in (SHIPPED / name_or_folder, Path(name_or_folder)):
        if (folder / MANIFEST).is_file():
            return Pack.open(folder)
    known = ", ".join(name for name in shipped_packs() if name != FACES_PACK)
    raise PackError(f"no pack {name_or_folder!r}: not a folder with a {MANIFEST}, and not one of: {known}")
