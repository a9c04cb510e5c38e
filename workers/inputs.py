"""A client's inputs: paths, bytes or open files, read whole and with a name for messages."""

from __future__ import annotations

import io
from pathlib import Path
from typing import BinaryIO

from pipeline.errors import SettingsError

Source = str | Path | bytes | BinaryIO


def read_input(source: Source) -> tuple[bytes, str]:
    """Bytes and name of an input."""
    if isinstance(source, bytes):
        return source, "the input"
    if isinstance(source, (str, Path)):
        path = Path(source)
        try:
            return path.read_bytes(), path.name
        except OSError as error:
            raise SettingsError(f"{path} cannot be read ({error.strerror}); give the path of a file") from error
    return source.read(), Path(str(getattr(source, "name", "the input"))).name


def named(data: bytes, name: str) -> BinaryIO:
    """A stream that errors call by this name."""
    stream = io.BytesIO(data)
    stream.name = name
    return stream
