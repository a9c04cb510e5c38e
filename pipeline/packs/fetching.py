"""Fetching the pieces of files side by side, each tried again from where it stopped; whole files are hashed."""

from __future__ import annotations

import hashlib
import queue
import threading
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from ..errors import PackError
from .incoming import NO_SPACE, Incoming, PartialFile
from .manifest import FileEntry
from .storage import Storage
from .web import PassingError

T = TypeVar("T")

OnProgress = Callable[[str, int, int], None]
"""File, bytes of it that are here, bytes in all. Called from several threads, one at a time."""


@dataclass(frozen=True)
class Patience:
    """How failures that may pass are met: so many tries in a row without a byte more, and seconds before the second,
    doubled at each further one (or what the server asks for)."""

    tries: int = 6
    wait: float = 0.5


@dataclass(frozen=True)
class Wanted:
    """What is to be fetched: files of a pack and the pieces that each is stored in."""

    pack: str
    files: Mapping[str, FileEntry]
    pieces: Mapping[str, list[str]]
    storage: Storage


@dataclass
class _State:
    stop: threading.Event = field(default_factory=threading.Event)
    telling: threading.Lock = field(default_factory=threading.Lock)
    hashing: set[str] = field(default_factory=set)


class Fetcher:
    """Fetches what is wanted with so many connections at a time.

    An exception ends all of them; what has come stays and is gone on with next time, but for a file whose hash is
    wrong, which is removed.
    """

    def __init__(self, wanted: Wanted, connections: int, patience: Patience, on_progress: OnProgress | None) -> None:
        self._wanted = wanted
        self._connections = connections
        self._patience = patience
        self._on_progress = on_progress
        self._state = _State()

    def sizes(self) -> dict[str, list[int]]:
        """Bytes of every piece, by file.

        Raises:
            DownloadError: not to be had. PackError: a file's pieces are together not of the manifest's length.
        """
        wanted = self._wanted
        known = {name: [wanted.files[name].bytes] for name in wanted.files if len(wanted.pieces[name]) == 1}
        asked = [piece for name in wanted.files if name not in known for piece in wanted.pieces[name]]
        found: dict[str, int] = {}

        def ask(piece: str) -> None:
            found[piece] = self._tried(lambda: wanted.storage.size(piece))

        self._each(asked, ask)
        for name in wanted.files:
            if name not in known:
                known[name] = [found[piece] for piece in wanted.pieces[name]]
                if sum(known[name]) != wanted.files[name].bytes:
                    raise PackError(
                        f"pack {wanted.pack}: the parts of {name} have {known[name]} bytes, {sum(known[name])} "
                        f"together instead of {wanted.files[name].bytes}; "
                        "a part is truncated where it is stored: use another place"
                    )
        return known

    def fetch(self, incoming: Incoming, sizes: Mapping[str, list[int]]) -> int:
        """Bring every file into that folder, whole and with the right hash; how many bytes came.

        Raises:
            DownloadError: the network, the server, or the disk. PackError: a file is not what the manifest says.
            OSError: the disk.
        """
        partial = {name: incoming.file(name, sizes[name]) for name in self._wanted.files}
        before = sum(file.bytes_done for file in partial.values())
        tasks = [(name, number) for name, file in partial.items() for number in range(len(file.sizes))]

        def work(task: tuple[str, int]) -> None:
            name, number = task
            file = partial[name]
            self._tried(lambda: self._piece(name, number, file), lambda: file.done[number])
            with self._state.telling:
                last = file.complete and name not in self._state.hashing
                self._state.hashing |= {name} if last else set()
            if last:
                self._check(name, file)

        self._each(tasks, work)
        return sum(file.bytes_done for file in partial.values()) - before

    def _piece(self, name: str, number: int, file: PartialFile) -> None:
        """What is missing of one piece."""
        size = file.sizes[number]
        self._tell(name, file)
        if file.done[number] == size:
            return
        piece = self._wanted.pieces[name][number]
        with self._wanted.storage.read(piece, file.done[number], size) as chunks, file.piece(number) as append:
            for chunk in chunks:
                if self._state.stop.is_set():
                    raise _StoppedError
                if file.done[number] + len(chunk) > size:
                    file.rewind(number)
                    raise PackError(
                        f"pack {self._wanted.pack}: {piece} is longer than {size} bytes; pull from another place"
                    )
                append(chunk)
                self._tell(name, file)
        if file.done[number] < size:
            raise PassingError(f"{piece} ended after {file.done[number]} of {size} bytes; pull again to go on")

    def _check(self, name: str, file: PartialFile) -> None:
        """Raises PackError: the whole file has another hash; it is removed."""
        file.sync()
        digest = sha256_of(file.path, self._state.stop.is_set)
        right = self._wanted.files[name].sha256
        if digest != right:
            file.discard()
            raise PackError(
                f"pack {self._wanted.pack}: {name} is damaged (SHA-256 {digest[:12]}… instead of {right[:12]}…) and "
                "was removed; pull again, or from another place"
            )

    def _tell(self, name: str, file: PartialFile) -> None:
        if self._on_progress is not None:
            with self._state.telling:
                self._on_progress(name, file.bytes_done, sum(file.sizes))

    def _tried(self, action: Callable[[], T], progress: Callable[[], int] = lambda: 0) -> T:
        """The action's result, tried again after passing failures as long as there is progress or patience."""
        failures, seen = 0, progress()
        while True:
            try:
                return action()
            except PassingError as error:
                failures, seen = (1 if progress() > seen else failures + 1), progress()
                if failures >= self._patience.tries:
                    raise
                wait = self._patience.wait * 2 ** (failures - 1) if error.wait is None else error.wait
            if self._state.stop.wait(wait):
                raise _StoppedError

    def _each(self, tasks: list[T], work: Callable[[T], None]) -> None:
        """Do all, some at a time; the first failure stops the others and is raised.

        The threads are daemons: an interrupted process does not wait for a server that is silent.
        """
        waiting = deque(tasks)
        results: queue.SimpleQueue[BaseException | None] = queue.SimpleQueue()

        def run() -> None:
            try:
                while not self._state.stop.is_set():
                    try:
                        task = waiting.popleft()
                    except IndexError:
                        break
                    work(task)
            except BaseException as error:
                self._state.stop.set()
                results.put(error)
            else:
                results.put(None)

        threads = [threading.Thread(target=run, daemon=True) for _ in range(min(self._connections, len(tasks)))]
        for thread in threads:
            thread.start()
        try:
            failures = [found for _ in threads if (found := results.get()) is not None]
        except BaseException:
            self._state.stop.set()
            raise
        for failure in failures:
            if not isinstance(failure, _StoppedError):
                raise failure


class _StoppedError(Exception):
    """Another thread failed, or the whole was interrupted."""


def sha256_of(path: Path, stopped: Callable[[], bool] = lambda: False) -> str:
    """The hash of a file in hexadecimal."""
    digest = hashlib.sha256()
    with path.open("rb", buffering=0) as file:
        while chunk := file.read(1 << 20):
            if stopped():
                raise _StoppedError
            digest.update(chunk)
    return digest.hexdigest()


def is_full(error: OSError) -> bool:
    """Whether the disk, a quota or a limit is why that failed."""
    return error.errno in NO_SPACE
