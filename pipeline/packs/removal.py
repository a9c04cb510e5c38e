"""Removing pulled packs."""

from __future__ import annotations

import contextlib
import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from ..errors import OutputError, PackError
from .built import build_names
from .locks import locked
from .names import is_word
from .places import packs_root
from .store import builds_named, shipped_packs


@dataclass(frozen=True)
class Removed:
    """Folders that are gone, and the bytes of the disk that they had."""

    folders: tuple[Path, ...]
    bytes: int


def remove(pack: str) -> Removed:
    """Remove every revision of a pulled pack, whole or begun, with its builds; NAME@REVISION removes that one, and
    NAME+PRESET a build alone.

    Raises:
        PackError: nothing of that name was pulled or built. OutputError: a folder cannot be removed.
    """
    if any(build_names(pack)):
        return _remove_builds(pack)
    name, _, revision = pack.partition("@")
    home = packs_root() / name
    found = sorted(home.iterdir()) if is_word(name) and home.is_dir() else []
    revisions = dict.fromkeys(path.name.removeprefix(".") for path in found if path.is_dir())
    wanted = [one for one in revisions if revision in ("", one)]
    if not wanted:
        ships = "it ships inside talkreel" if name in shipped_packs() else "see talkreel pack list"
        raise PackError(f"pack {pack} was not pulled, so there is nothing to remove; {ships}")
    folders, size = [], 0
    for one in wanted:
        with locked(packs_root() / ".locks" / f"{name}@{one}"):
            for folder in (home / one, home / f".{one}"):
                if folder.is_dir():
                    size += _bytes_of(folder)
                    _remove(folder)
                    folders.append(folder)
    with contextlib.suppress(OSError):
        home.rmdir()
    return Removed(tuple(folders), size)


def _remove_builds(text: str) -> Removed:
    """The builds of that name, those that are out of date, too."""
    made = builds_named(text)
    if not made:
        raise PackError(f"pack {text} was not built, so there is nothing to remove; see talkreel pack list")
    size = sum(build.bytes for build in made)
    for build in made:
        _remove(build.folder)
    return Removed(tuple(build.folder for build in made), size)


def _remove(folder: Path) -> None:
    """First out of sight, so that nobody opens a pack of which half is gone."""
    hidden = folder.with_name(f".removed-{folder.name}")
    try:
        folder.replace(hidden)
        shutil.rmtree(hidden)
    except OSError as error:
        raise OutputError(f"{folder} cannot be removed ({error.strerror}); remove it by hand") from error


def _bytes_of(folder: Path) -> int:
    """Of the disk; a file that has several names in there counts once."""
    seen = {}
    for place, _, names in os.walk(folder):
        for name in names:
            status = os.lstat(os.path.join(place, name))
            seen[status.st_dev, status.st_ino] = status.st_blocks * 512
    return sum(seen.values())
