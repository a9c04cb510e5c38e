"""Files that are there whole or not at all."""

from __future__ import annotations

import secrets
from contextlib import suppress
from pathlib import Path

from .errors import OutputError


def part_of(path: Path) -> Path:
    """Where a file is written until it is whole: beside it, under a name that no other has and that is no longer
    than file systems allow (255 bytes), however long the file's own is."""
    return path.with_name(f".{path.name[:40]}.{secrets.token_hex(4)}.part")


def write_whole(path: Path, data: bytes) -> None:
    """Write a file that appears under its name, replacing what was there, only when it is complete.

    Raises:
        OutputError: it cannot be written there; nothing of it is left.
    """
    part = part_of(path)
    try:
        part.write_bytes(data)
        part.replace(path)
    except BaseException as error:
        with suppress(OSError):
            part.unlink(missing_ok=True)
        if isinstance(error, OSError):
            reason = f"{path} cannot be written: {error.strerror}. Choose another place, or make room."
            raise OutputError(reason) from error
        raise
