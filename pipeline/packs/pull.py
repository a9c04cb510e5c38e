"""Pulling a pack: after it the pack is here, every file of it hashed, or nothing new is to be seen."""

from __future__ import annotations

import contextlib
import datetime
import json
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..errors import DownloadError, OutputError, PackError
from ..versions import version_of
from .fetching import Fetcher, OnProgress, Patience, Wanted, is_full, sha256_of
from .incoming import Incoming, check_space
from .locks import locked
from .places import MANIFEST, RECORD, incoming_folder, packs_root
from .registry import Entry, Origin
from .storage import open_storage


@dataclass(frozen=True)
class PullOptions:
    """How a pack is pulled. `connections`: at a time. `accept_licence`: said by the user, for packs that may not be
    used commercially. `origin`: another place than the entry's. `on_wait`: called when another process pulls the
    same pack, whose end is waited for."""

    connections: int = 4
    patience: Patience = field(default_factory=Patience)
    accept_licence: bool = False
    origin: Origin | None = None
    on_progress: OnProgress | None = None
    on_wait: Callable[[], None] | None = None


@dataclass(frozen=True)
class Pulled:
    """`folder`: where the pack lies; `fetched`: bytes that this pull brought."""

    folder: Path
    fetched: int


def pull(entry: Entry, options: PullOptions | None = None) -> Pulled:
    """Bring a pack here, or what is missing or damaged of it.

    Raises:
        PackError: its licence was not accepted; a file is not what the manifest says (it is removed and named);
        offline mode is set. DownloadError: network, server, disk. OutputError: the folder cannot be written.
        RuntimeMissingError: huggingface_hub is not installed.
    """
    options = options or PullOptions()
    with locked(packs_root() / ".locks" / f"{entry.name}@{entry.revision}", options.on_wait):
        missing = damaged_files(entry)
        incoming = Incoming(incoming_folder(entry.folder))
        if not missing:
            incoming.remove()
            _write_manifest(entry, entry.folder)
            return Pulled(entry.folder, 0)
        _check_licence(entry, options)
        try:
            fetched = _fetch(entry, missing, incoming, options)
            _publish(entry, missing, incoming, options)
        except OSError as error:
            if is_full(error):
                incoming.remove()
                raise DownloadError(
                    f"pack {entry.name} does not fit on the disk of {packs_root()} ({error.strerror}); what had come "
                    "was removed: make space, or choose another folder by TALKREEL_PACKS"
                ) from error
            raise OutputError(
                f"{error.filename or entry.folder} cannot be written ({error.strerror}); "
                "choose another folder by TALKREEL_PACKS"
            ) from error
        finally:
            with contextlib.suppress(OSError):
                entry.folder.parent.rmdir()  # where nothing came at all
        return Pulled(entry.folder, fetched)


def damaged_files(entry: Entry) -> list[str]:
    """Files of a pack that are not in its folder, or not whole by size and hash."""
    return [
        name
        for name, file in entry.manifest.files.items()
        if not (path := entry.folder / name).is_file()
        or path.stat().st_size != file.bytes
        or sha256_of(path) != file.sha256
    ]


def _check_licence(entry: Entry, options: PullOptions) -> None:
    if entry.manifest.commercial_use or options.accept_licence or _accepted(entry.folder):
        return
    raise PackError(
        f"the licence of pack {entry.name} ({entry.manifest.licence}) forbids commercial use; "
        "if that suits you: --accept-licence"
    )


def _accepted(folder: Path) -> bool:
    """Whether its licence was accepted when it was pulled here before."""
    try:
        return json.loads((folder / RECORD).read_text("utf-8"))["licence"]["accepted"] is True
    except (OSError, ValueError, KeyError, TypeError):
        return False


def _fetch(entry: Entry, missing: list[str], incoming: Incoming, options: PullOptions) -> int:
    files = {name: entry.manifest.files[name] for name in missing}
    check_space(
        incoming.folder,
        sum(file.bytes - min(incoming.taken(name), file.bytes) for name, file in files.items()),
        f"pack {entry.name}",
    )
    origin = options.origin or entry.origin
    wanted = Wanted(entry.name, files, {name: origin.pieces(name) for name in files}, open_storage(origin))
    fetcher = Fetcher(wanted, options.connections, options.patience, options.on_progress)
    return fetcher.fetch(incoming, fetcher.sizes())


def _publish(entry: Entry, files: list[str], incoming: Incoming, options: PullOptions) -> None:
    """Make what came visible: the whole folder by one rename, or in a pack that is here, file by file."""
    record = incoming.files / RECORD
    _write_json(record, _record(entry, options))
    if (entry.folder / MANIFEST).is_file():
        for name in files:
            (entry.folder / name).parent.mkdir(parents=True, exist_ok=True)
            (incoming.files / name).replace(entry.folder / name)
        record.replace(entry.folder / RECORD)
        _write_manifest(entry, entry.folder)
    else:
        _write_manifest(entry, incoming.files)
        _sync_folders(incoming.files)
        shutil.rmtree(entry.folder, ignore_errors=True)  # a folder without a manifest is no pack
        incoming.files.rename(entry.folder)
    _sync_folder(entry.folder.parent)
    incoming.remove()


def _record(entry: Entry, options: PullOptions) -> dict[str, Any]:
    return {
        "talkreel": version_of("talkreel"),
        "time": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "origin": (options.origin or entry.origin).text,
        "licence": {
            "summary": entry.manifest.licence,
            "commercial_use": entry.manifest.commercial_use,
            "accepted": options.accept_licence or _accepted(entry.folder),
            "files": {name: file.licence for name, file in entry.manifest.files.items()},
        },
    }


def _write_manifest(entry: Entry, folder: Path) -> None:
    """The manifest as the entry has it today; a pack pulled by an older talkreel gets what was added since."""
    path = folder / MANIFEST
    with contextlib.suppress(OSError, ValueError):
        if json.loads(path.read_text("utf-8")) == entry.data:
            return
    _write_json(path, entry.data)


def _write_json(path: Path, data: Any) -> None:
    new = path.with_name(path.name + "~")
    with new.open("w", encoding="utf-8") as file:
        json.dump(data, file, indent=2, ensure_ascii=False)
        file.flush()
        os.fsync(file.fileno())
    new.replace(path)


def _sync_folders(root: Path) -> None:
    for folder, _, _ in os.walk(root):
        _sync_folder(Path(folder))


def _sync_folder(folder: Path) -> None:
    """Return when the names in a folder are on the disk."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
