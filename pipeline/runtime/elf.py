"""The libraries that a shared library asks for, read from its dynamic section (ELF, 64 bits, little-endian)."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

LOAD, DYNAMIC = 1, 2  # kinds of segments
NEEDED, STRING_TABLE, RPATH, RUNPATH = 1, 5, 15, 29  # entries of the dynamic section


class NotElfError(Exception):
    """The file is no shared library of this kind."""


def needed_libraries(path: Path) -> tuple[list[str], list[str]]:
    """Names of the libraries that the loader must find, and folders to look in first, `$ORIGIN` resolved.

    Raises:
        NotElfError: the file is none, or damaged. OSError: it cannot be read.
    """
    with path.open("rb") as file:
        try:
            return _read(file, path.parent)
        except (struct.error, StopIteration, ValueError) as error:
            raise NotElfError(f"{path} is no shared library for 64 bits, or damaged") from error


def _read(file: BinaryIO, folder: Path) -> tuple[list[str], list[str]]:
    head = file.read(64)
    if head[:6] != b"\x7fELF\x02\x01":
        raise ValueError("no ELF")
    (first,) = struct.unpack_from("<Q", head, 32)
    size, count = struct.unpack_from("<HH", head, 54)
    segments = [_segment(file, first + size * index) for index in range(count)]
    offset, length = next((at, size) for kind, at, _, size in segments if kind == DYNAMIC)
    file.seek(offset)
    entries = list(_entries(file.read(length)))
    table = next(value for tag, value in entries if tag == STRING_TABLE)
    start = next(at + table - base for kind, at, base, size in segments if kind == LOAD and base <= table < base + size)
    names = [_string(file, start + value) for tag, value in entries if tag == NEEDED]
    paths = [_string(file, start + value) for tag, value in entries if tag in (RPATH, RUNPATH)]
    folders = [part.replace("$ORIGIN", str(folder)) for text in paths for part in text.split(":") if part]
    return names, folders


def _segment(file: BinaryIO, at: int) -> tuple[int, int, int, int]:
    """Kind, offset in the file, address, size in the file."""
    file.seek(at)
    kind, _, offset, address, _, size = struct.unpack("<IIQQQQ", file.read(40))
    return kind, offset, address, size


def _entries(section: bytes) -> Iterator[tuple[int, int]]:
    for tag, value in struct.iter_unpack("<QQ", section):
        if tag == 0:
            return
        yield tag, value


def _string(file: BinaryIO, at: int) -> str:
    file.seek(at)
    text = bytearray()
    while block := file.read(64):
        end = block.find(b"\0")
        if end >= 0:
            return (text + block[:end]).decode()
        text += block
    raise ValueError("a string without end")
