"""Finding packs: shipped, pulled, in a folder, known but not here."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from pipeline.errors import PackError
from pipeline.packs.catalogue import list_packs
from pipeline.packs.places import packs_root
from pipeline.packs.registry import read_registry
from pipeline.packs.store import SHIPPED, find_pack, open_pack

REVISION = read_registry().entry("timeline-studio").revision


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TALKREEL_PACKS", str(tmp_path / "packs"))
    return tmp_path / "packs"


def put(folder: Path, name: str, revision: str, second: int = 0) -> Path:
    """A copy of the embedded pack under another name, `second` later than others."""
    shutil.copytree(SHIPPED / "embedded", folder, ignore=shutil.ignore_patterns("authoring", "__pycache__", "*.py"))
    manifest = json.loads((folder / "manifest.json").read_text())
    (folder / "manifest.json").write_text(json.dumps(manifest | {"name": name, "revision": revision}))
    os.utime(folder / "manifest.json", (second, second))
    return folder


def test_a_pulled_pack_opens_by_its_name(root: Path) -> None:
    with pytest.raises(PackError, match=r"is not here yet; pull it: talkreel pack pull timeline-studio"):
        open_pack("timeline-studio")
    folder = put(root / "timeline-studio" / REVISION, "timeline-studio", REVISION)
    assert open_pack("timeline-studio").folder == folder
    assert open_pack(f"timeline-studio@{REVISION}").folder == folder


def test_what_is_being_pulled_is_not_seen(root: Path) -> None:
    put(root / "timeline-studio" / f".{REVISION}" / "files", "timeline-studio", REVISION)
    put(root / "timeline-studio" / ".other", "timeline-studio", "other")
    with pytest.raises(PackError, match="is not here yet"):
        open_pack("timeline-studio")


def test_another_revision_than_the_known_one_is_used_only_when_asked_for(root: Path) -> None:
    folder = put(root / "timeline-studio" / "old", "timeline-studio", "old")
    with pytest.raises(PackError, match=r"pull it: .* or use timeline-studio@old"):
        open_pack("timeline-studio")
    assert open_pack("timeline-studio@old").folder == folder
    with pytest.raises(PackError, match="revision none"):
        open_pack("timeline-studio@none")


def test_of_a_pack_from_elsewhere_the_one_pulled_last_is_meant(root: Path) -> None:
    put(root / "mine" / "a", "mine", "a", 2000)
    newer = put(root / "mine" / "b", "mine", "b", 3000)
    put(root / "mine" / "c", "mine", "c", 1000)
    assert find_pack("mine") == newer


def test_shipped_before_pulled_before_a_folder_here(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(root.parent)
    put(root / "embedded" / "1", "embedded", "1")
    put(root.parent / "mine", "mine", "here")
    assert open_pack("embedded").folder == SHIPPED / "embedded"
    assert open_pack("mine").folder == Path("mine")
    pulled = put(root / "mine" / "a", "mine", "a")
    assert open_pack("mine").folder == pulled
    assert open_pack("./mine").folder == Path("mine")


def test_the_list_has_every_pack_once(root: Path) -> None:
    put(root / "timeline-studio" / "old", "timeline-studio", "old")
    put(root / "mine" / "a", "mine", "a")
    listed = [(one.manifest.name, one.manifest.revision[:3], one.state) for one in list_packs(read_registry())]
    assert listed == [
        ("embedded", "1", "shipped"),
        ("mine", "a", "pulled"),
        ("timeline-studio", "old", "pulled"),
        ("timeline-studio", "a20", "known"),
        ("liveportrait-onnx", "e6c", "known"),
    ]


def test_the_root_is_a_variable_or_in_the_cache(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert packs_root() == root
    monkeypatch.delenv("TALKREEL_PACKS")
    monkeypatch.setenv("XDG_CACHE_HOME", "/cache")
    assert packs_root() == Path("/cache/talkreel/packs")
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", "/home/someone")
    assert packs_root() == Path("/home/someone/.cache/talkreel/packs")
