"""Files that are there whole or not at all."""

from __future__ import annotations

import secrets
from contextlib import suppress
from pathlib import Path

from .errors import OutputError


def write_whole(path: Path, data: bytes) -> None:
    """Write a file that appears under its name, replacing what was there, only when it is complete.

    Raises:
        OutputError: it cannot be written there; nothing of it is left.
    """
    part = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
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
