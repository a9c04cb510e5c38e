"""Where finished films are kept: in Redis, in a folder, or at any location that fsspec reaches.

TALKREEL_FILMS        a folder, or an address such as s3://bucket/films (needs talkreel[fsspec]); not given:
                      with the artifacts in Redis
TALKREEL_FILM_HOURS   hours that a film is kept (default 24); what the supervisor finds older is deleted

A film elsewhere than in Redis is known by its full address, so clients need no such setting; they need to reach
the place (a shared folder, the same credentials).
"""

from __future__ import annotations

import logging
import os
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

from pipeline.errors import OutputError, SettingsError

from .artifacts import ArtifactStore
from .errors import ArtifactMissingError

log = logging.getLogger(__name__)

DEFAULT_HOURS = 24.0
FOLDER = "file://"


class Films(ABC):
    """One place for films. `hours`: how long each is kept."""

    def __init__(self, hours: float) -> None:
        self.hours = hours

    @staticmethod
    def read(store: ArtifactStore, environ: Mapping[str, str] = os.environ) -> Films:
        """From the environment. Raises SettingsError: a value cannot be used."""
        text = environ.get("TALKREEL_FILM_HOURS") or str(DEFAULT_HOURS)
        try:
            hours = float(text)
        except ValueError:
            hours = 0.0
        if not 0 < hours < 24 * 366:
            raise SettingsError(f"TALKREEL_FILM_HOURS {text!r} is not a number of hours above 0, a year at most")
        place = environ.get("TALKREEL_FILMS")
        if not place:
            return StoredFilms(store, hours)
        if place.startswith(FOLDER) or "://" not in place:
            return FolderFilms(Path(place.removeprefix(FOLDER)), hours)
        return RemoteFilms(place, hours)

    @abstractmethod
    def check(self) -> None:
        """Raises SettingsError: this process can keep no films there. Asked before a worker is at work."""

    @abstractmethod
    def put(self, job: str, key: str, path: Path) -> str:
        """Keep a film; its address, or `key` where it is an artifact. Raises OutputError: it cannot be kept."""

    @abstractmethod
    def delete(self, job: str) -> None:
        """Delete a job's film, where there is one and it is no artifact (those go with the job's others)."""

    @abstractmethod
    def sweep(self) -> None:
        """Delete what was kept for long enough."""


class StoredFilms(Films):
    """Films as artifacts."""

    def __init__(self, store: ArtifactStore, hours: float) -> None:
        super().__init__(hours)
        self._store = store

    def check(self) -> None:
        """Nothing: Redis may come later."""

    def put(self, job: str, key: str, path: Path) -> str:
        self._store.put(key, path.read_bytes(), job=job, lifetime=self.hours * 3600)
        return key

    def delete(self, job: str) -> None:
        """Nothing: the store's `release` does it."""

    def sweep(self) -> None:
        """Nothing: every artifact has its lifetime."""


class FolderFilms(Films):
    """Films as files JOB.webm of one folder."""

    def __init__(self, folder: Path, hours: float) -> None:
        super().__init__(hours)
        self.folder = folder.absolute()

    def check(self) -> None:
        probe = self.folder / f".{uuid4().hex[:8]}.part"
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            probe.touch()
            probe.unlink()
        except OSError as error:
            raise SettingsError(
                f"films cannot be written to {self.folder} ({error.strerror}); give another place with TALKREEL_FILMS"
            ) from None

    def put(self, job: str, key: str, path: Path) -> str:
        target = self.folder / f"{job}.webm"
        part = target.with_name(f".{job}.{uuid4().hex[:8]}.part")
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            part.write_bytes(path.read_bytes())
            part.replace(target)
        except OSError as error:
            with suppress(OSError):
                part.unlink(missing_ok=True)
            raise OutputError(f"film {target} cannot be written ({error.strerror}); see TALKREEL_FILMS") from error
        return f"{FOLDER}{target}"

    def delete(self, job: str) -> None:
        for path in (self.folder / f"{job}.webm", *self.folder.glob(f".{job}.*.part")):
            path.unlink(missing_ok=True)

    def sweep(self) -> None:
        for path in (*self.folder.glob("*.webm"), *self.folder.glob(".*.part")):
            with suppress(FileNotFoundError):  # its job was forgotten meanwhile
                if time.time() - path.stat().st_mtime > self.hours * 3600:
                    path.unlink()


class RemoteFilms(Films):
    """Films below an fsspec address. Raises SettingsError: fsspec or its part for this address is missing."""

    def __init__(self, address: str, hours: float) -> None:
        super().__init__(hours)
        self._address = address.rstrip("/")
        self._files, self._root = _fsspec(self._address)

    def check(self) -> None:
        """Nothing but what opening the address checks: it may come later."""

    def put(self, job: str, key: str, path: Path) -> str:
        try:
            self._files.makedirs(self._root, exist_ok=True)
            self._files.pipe_file(f"{self._root}/{job}.webm", path.read_bytes())
        except OSError as error:
            raise OutputError(
                f"film {self._address}/{job}.webm cannot be written: {error}; see TALKREEL_FILMS"
            ) from error
        return f"{self._address}/{job}.webm"

    def delete(self, job: str) -> None:
        path = f"{self._root}/{job}.webm"
        if self._files.exists(path):
            self._files.rm_file(path)

    def sweep(self) -> None:
        for path in self._files.glob(f"{self._root}/*.webm"):
            if time.time() - self._files.modified(path).timestamp() > self.hours * 3600:
                self._files.rm_file(path)


def fetch_film(store: ArtifactStore, film: str) -> bytes:
    """A film by its address or its artifact key. Raises ArtifactMissingError: it has expired."""
    if "://" not in film:
        return store.get(film)
    try:
        if film.startswith(FOLDER):
            return Path(film.removeprefix(FOLDER)).read_bytes()
        files, path = _fsspec(film)
        data: bytes = files.cat_file(path)
        return data
    except FileNotFoundError:
        raise ArtifactMissingError(film) from None
    except OSError as error:
        raise OutputError(f"film {film} cannot be read: {error}") from error


def delete_film(film: str) -> None:
    """Delete a film by its address, where it is no artifact (those go with the job's others)."""
    with suppress(FileNotFoundError):
        if film.startswith(FOLDER):
            Path(film.removeprefix(FOLDER)).unlink()
        elif "://" in film:
            files, path = _fsspec(film)
            files.rm_file(path)


def _fsspec(address: str) -> tuple[Any, str]:
    try:
        import fsspec

        files, path = fsspec.url_to_fs(address)
        return files, path
    except (ImportError, ValueError) as error:
        hint = 'pip install "talkreel[fsspec]", and what fsspec needs for this kind of address'
        raise SettingsError(f"films at {address} cannot be reached: {error}; {hint}") from None
