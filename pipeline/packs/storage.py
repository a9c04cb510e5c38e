"""Where the stored pieces of a pack's files are read from: the hub, a web server, or a folder."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Protocol

from ..errors import DownloadError
from .registry import Origin
from .web import Web, below

CHUNK = 1 << 18
"""Bytes read from a file at a time."""


class Storage(Protocol):
    """Pieces by name, each of a size that does not change."""

    def size(self, piece: str) -> int:
        """Bytes of a piece. Raises DownloadError (PassingError where a second try may help)."""

    def read(self, piece: str, start: int, size: int) -> AbstractContextManager[Iterator[bytes]]:
        """The piece's bytes from `start` on; `size` is what `size` said. Raises as above."""


class WebStorage:
    """Pieces at addresses."""

    def __init__(self, web: Web, address: Callable[[str], str]) -> None:
        self._web = web
        self._address = address

    def size(self, piece: str) -> int:
        return self._web.size(self._address(piece))

    def read(self, piece: str, start: int, size: int) -> AbstractContextManager[Iterator[bytes]]:
        return self._web.read(self._address(piece), start, size)


class FolderStorage:
    """Pieces in a folder of this machine."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def size(self, piece: str) -> int:
        path = self._folder / piece
        if not path.is_file():
            raise DownloadError(f"{path} is missing; put it there, or pull from another place")
        return path.stat().st_size

    @contextmanager
    def read(self, piece: str, start: int, size: int) -> Iterator[Iterator[bytes]]:
        path = self._folder / piece
        try:
            file = path.open("rb")
        except OSError as error:
            raise DownloadError(f"{path} cannot be read ({error.strerror}); put it there, or change it") from error
        with file:
            if os.fstat(file.fileno()).st_size != size:
                raise DownloadError(f"{path} changed while it was read; pull again")
            file.seek(start)
            yield iter(lambda: file.read(CHUNK), b"")


def open_storage(origin: Origin) -> Storage:
    """Where a pack's pieces are.

    Raises:
        RuntimeMissingError: it is on the web, and huggingface_hub is not installed. PackError: offline mode is set.
        DownloadError: an address of a kind that is not known.
    """
    if origin.hub is not None:
        hub, revision, web = origin.hub, str(origin.revision), Web()
        return WebStorage(web, lambda piece: web.hub_url(hub, revision, piece))
    place = str(origin.url)
    if is_web(place):
        return WebStorage(Web(), lambda piece: below(place, piece))
    if "://" in place:
        raise DownloadError(f"{place}: only http, https and folders are known; give such a place")
    return FolderStorage(Path(place))


def is_web(place: str) -> bool:
    """Whether that is an address and not a folder."""
    return place.lower().startswith(("http://", "https://"))
