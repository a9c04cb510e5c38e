"""Files that are being fetched, so that a process may die at any byte and the next one carries on.

Each file has its full length from the start: its space is taken, and its pieces are written side by side, each at
its place. How far each piece came stands in a record beside it, written after the bytes themselves. A machine that
loses power may keep the record and lose bytes; the hash, taken of the whole file, finds that.
"""

from __future__ import annotations

import errno
import os
import shutil
import struct
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from ..errors import DownloadError

NO_SPACE = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
"""A full disk, a used-up quota, a limit on the size of files."""

_ROW = struct.Struct("<QQ")  # a piece of the record: its size, and how much of it has come


class PartialFile:
    """One file and the record of its pieces.

    Args:
        path: where its bytes are. record: where its record is. sizes: bytes of each piece, in order.

    Raises:
        OSError: no space, or not writable.
    """

    def __init__(self, path: Path, record: Path, sizes: Sequence[int]) -> None:
        self.path = path
        self.sizes = tuple(sizes)
        self._record = record
        done = self._recorded()
        if done is None:
            done = [0] * len(self.sizes)
            self._begin()
        self.done = done

    @property
    def bytes_done(self) -> int:
        return sum(self.done)

    @property
    def complete(self) -> bool:
        return self.done == list(self.sizes)

    def _recorded(self) -> list[int] | None:
        """What came of each piece; None where nothing usable is there."""
        try:
            data, length = self._record.read_bytes(), self.path.stat().st_size
        except OSError:
            return None
        if length != sum(self.sizes) or len(data) != len(self.sizes) * _ROW.size:
            return None
        rows = list(_ROW.iter_unpack(data))
        if [size for size, _ in rows] != list(self.sizes) or any(done > size for size, done in rows):
            return None
        return [done for _, done in rows]

    def _begin(self) -> None:
        self._record.unlink(missing_ok=True)
        self.path.unlink(missing_ok=True)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._record.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("xb") as file:
            _take_space(file.fileno(), sum(self.sizes))
        record = b"".join(_ROW.pack(size, 0) for size in self.sizes)
        new = self._record.with_name(self._record.name + "~")
        new.write_bytes(record)
        new.replace(self._record)

    @contextmanager
    def piece(self, number: int) -> Iterator[Callable[[bytes], None]]:
        """Append to one piece; several pieces at once from several threads.

        Raises:
            OSError: no space, or not writable.
        """
        with self.path.open("r+b", buffering=0) as file, self._record.open("r+b", buffering=0) as record:
            file.seek(sum(self.sizes[:number]) + self.done[number])

            def append(data: bytes) -> None:
                view = memoryview(data)
                while view:
                    view = view[file.write(view) :]
                done = self.done[number] + len(data)
                record.seek(number * _ROW.size)
                record.write(_ROW.pack(self.sizes[number], done))
                self.done[number] = done

            yield append

    def rewind(self, number: int) -> None:
        """Forget what came of a piece."""
        with self._record.open("r+b", buffering=0) as record:
            record.seek(number * _ROW.size)
            record.write(_ROW.pack(self.sizes[number], 0))
        self.done[number] = 0

    def sync(self) -> None:
        """Return when the bytes are on the disk."""
        with self.path.open("r+b") as file:
            os.fsync(file.fileno())

    def discard(self) -> None:
        """Remove the file and its record."""
        self._record.unlink(missing_ok=True)
        self.path.unlink(missing_ok=True)


def _take_space(descriptor: int, size: int) -> None:
    """Give an empty file its length and its place on the disk (where the system can)."""
    if size and hasattr(os, "posix_fallocate"):
        os.posix_fallocate(descriptor, 0, size)
    else:
        os.truncate(descriptor, size)


class Incoming:
    """The hidden folder in which a pack's files are gathered. `files`: below it they lie as in the pack."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.files = folder / "files"

    def file(self, name: str, sizes: Sequence[int]) -> PartialFile:
        """A file that is begun or goes on.

        Raises:
            OSError: no space, or not writable.
        """
        return PartialFile(self.files / name, self.folder / "progress" / name, sizes)

    def taken(self, name: str) -> int:
        """Bytes of the disk that a file begun before has."""
        path = self.files / name
        return path.stat().st_size if path.is_file() else 0

    def remove(self) -> None:
        """Leave nothing of it."""
        shutil.rmtree(self.folder, ignore_errors=True)


def check_space(folder: Path, needed: int, what: str) -> None:
    """Raises DownloadError: the disk of that folder has not so many bytes left."""
    place = folder
    while not place.exists():
        place = place.parent
    free = shutil.disk_usage(place).free
    if free < needed:
        raise DownloadError(
            f"{what} needs {needed / 1e6:.1f} MB more on the disk of {folder}, {free / 1e6:.1f} MB are free; "
            "make space, or choose another folder by TALKREEL_PACKS"
        )
