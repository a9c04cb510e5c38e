"""What names a pack, its revision and its files may have: they become folders and files on users' machines."""

from __future__ import annotations

import re
from pathlib import PurePosixPath, PureWindowsPath

from ..errors import PackError

_WORD = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")

RESERVED = ("manifest.json", "pulled.json", "built")
"""What talkreel itself keeps in a pack's folder, beside the pack's files."""


def is_word(text: str) -> bool:
    """Letters, digits, `.`, `_` and `-`, not beginning with a sign: safe as the name of a folder."""
    return _WORD.fullmatch(text) is not None


def check_word(text: str, what: str) -> str:
    """Raises PackError: the text cannot be the name of a folder."""
    if not is_word(text):
        raise PackError(f"{what} {text[:120]!r} may hold letters, digits, '.', '_' and '-' only; do not use this pack")
    return text


def check_file_name(name: str, pack: str) -> str:
    """A file's name inside a pack: relative, with `/`, below the pack's folder.

    Raises:
        PackError: it leads elsewhere, or is one of talkreel's own.
    """
    parts = PurePosixPath(name).parts
    windows = PureWindowsPath(name)
    if not parts or "/".join(parts) != name or ".." in parts or name.startswith("/") or windows.drive or "\\" in name:
        raise PackError(f"pack {pack}: file {name!r} lies outside of the pack; do not use this pack")
    if not name.isprintable() or parts[0] in RESERVED:
        raise PackError(f"pack {pack}: file {name!r} has a name that is talkreel's own; do not use this pack")
    return name
