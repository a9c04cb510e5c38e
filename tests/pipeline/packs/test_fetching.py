"""Fetching within one process: servers and folders that misbehave, and what is kept and resumed."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pipeline.errors import DownloadError, OutputError, PackError
from pipeline.packs.addresses import find_entry
from pipeline.packs.catalogue import list_packs
from pipeline.packs.fetching import Patience
from pipeline.packs.pull import Pulled, PullOptions, pull
from pipeline.packs.registry import Entry, Registry, read_entry
from pipeline.packs.removal import remove
from pipeline.packs.section import Section
from pipeline.packs.store import open_pack
from pipeline.packs.web import Web
from tests.hub_server import Fault, HubServer
from tests.pipeline.packs.tiny_pack import FILES, PARTS, TOTAL, tiny_entry

QUICK = Patience(tries=3, wait=0.001)


@pytest.fixture(autouse=True)
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for packs, and no proxies."""
    monkeypatch.setenv("TALKREEL_PACKS", str(tmp_path / "packs"))
    for name in list(os.environ):
        if name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)
    return tmp_path / "packs"


@pytest.fixture
def server() -> Iterator[HubServer]:
    """The pack below /mine, in parts as on the hub."""
    with HubServer(redirect_above=TOTAL) as hub:
        for name, data in FILES.items():
            endings = PARTS.get(name, [])
            size = -(-len(data) // max(len(endings), 1))
            for number, piece in enumerate([f"{name}.part-{ending}" for ending in endings] or [name]):
                hub.add_at(f"/mine/{piece}", data[number * size : (number + 1) * size])
        yield hub


def entry_at(url: str, **changes: Any) -> Entry:
    return read_entry(Section(tiny_entry(**({"origin": {"url": url, "parts": PARTS}} | changes)), "tiny"))


def fetch(entry: Entry, **options: Any) -> Pulled:
    return pull(entry, PullOptions(**({"patience": QUICK} | options)))


def check_whole(folder: Path) -> None:
    assert {name: (folder / name).read_bytes() for name in FILES} == FILES


def test_progress_ends_with_every_file_whole(server: HubServer) -> None:
    seen: dict[str, list[int]] = {name: [] for name in FILES}
    fetch(entry_at(server.url + "/mine"), on_progress=lambda name, done, total: seen[name].append(done))
    assert {name: steps[-1] for name, steps in seen.items()} == {name: len(data) for name, data in FILES.items()}
    for steps in seen.values():
        assert steps == sorted(steps)


def test_so_many_connections_and_not_more(server: HubServer) -> None:
    server.pause = 0.002
    fetch(entry_at(server.url + "/mine"), connections=2)
    assert server.most_at_once == 2


def test_a_server_that_cannot_begin_in_the_middle(server: HubServer) -> None:
    server.fail("denoiser.onnx", Fault(cut=30_000), Fault(no_ranges=True))
    check_whole(fetch(entry_at(server.url + "/mine/")).folder)


def test_a_connection_that_always_breaks_is_given_up_and_gone_on_with(server: HubServer) -> None:
    server.fail("denoiser.onnx", Fault(cut=1000), *[Fault(cut=0)] * 3)
    with pytest.raises(DownloadError, match=r"denoiser\.onnx cannot be fetched .*pull again"):
        fetch(entry_at(server.url + "/mine"))
    before = server.sent()
    check_whole(fetch(entry_at(server.url + "/mine")).folder)
    assert server.sent() - before <= TOTAL - 1000


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (Fault(404), "answers 404; check the address"),
        (Fault(401), "answers 401; set HF_TOKEN"),
        (Fault(403), "answers 403; set HF_TOKEN"),
        (Fault(503, {"Retry-After": "0"}), "answers 503; pull again later"),
        (Fault(407), "answers 407; give the proxy's user"),
        (Fault(206, {"Content-Range": "bytes 1-2/3"}), "instead of bytes"),
        (Fault(200, {"Content-Encoding": "gzip"}), "compresse"),
    ],
)
def test_refusals_say_what_to_do(server: HubServer, fault: Fault, said: str) -> None:
    server.fail("denoiser.onnx", fault, always=True)
    with pytest.raises(DownloadError, match=said) as caught:
        fetch(entry_at(server.url + "/mine"))
    assert "/mine/denoiser.onnx" in str(caught.value)


def test_more_bytes_than_there_should_be_are_refused(server: HubServer, root: Path) -> None:
    server.fail("denoiser.onnx", Fault(extra=b"more"), always=True)
    with pytest.raises(PackError, match=r"denoiser\.onnx is longer than 40003 bytes"):
        fetch(entry_at(server.url + "/mine"))
    server.always.clear()
    check_whole(fetch(entry_at(server.url + "/mine")).folder)


def test_nobody_there(server: HubServer) -> None:
    server.close()
    with pytest.raises(DownloadError, match="cannot be fetched"):
        fetch(entry_at(server.url + "/mine"))


def test_a_length_is_found_where_head_is_refused(server: HubServer) -> None:
    assert Web().size(server.url + "/mine/denoiser.onnx") == len(FILES["denoiser.onnx"])
    server.refuse_head = True
    assert Web().size(server.url + "/mine/denoiser.onnx") == len(FILES["denoiser.onnx"])


def test_a_repository_that_cannot_be(server: HubServer) -> None:
    with pytest.raises(PackError, match="no repository of the hub"):
        fetch(entry_at("", origin={"hub": "a/b/c", "revision": "1"}))


def test_from_a_folder_with_a_manifest(tmp_path: Path) -> None:
    stick = tmp_path / "stick"
    for name, data in FILES.items():
        (stick / name).parent.mkdir(parents=True, exist_ok=True)
        (stick / name).write_bytes(data)
    (stick / "manifest.json").write_text(json.dumps(tiny_entry(origin=None)))
    entry = find_entry(str(stick), Registry({}))
    check_whole(fetch(entry).folder)
    assert open_pack("tiny").folder.name == "0123abc"
    (stick / "table.bin").unlink()
    remove("tiny")
    with pytest.raises(PackError, match="no pack 'tiny'"):
        open_pack("tiny")
    with pytest.raises(DownloadError, match=r"table\.bin cannot be read"):
        fetch(entry)


def test_a_manifest_from_the_web_names_no_folder_of_this_machine(server: HubServer, tmp_path: Path) -> None:
    for name, url in (("a", str(tmp_path)), ("b", f"file://{tmp_path}"), ("c", "../mine")):
        server.add_at(f"/{name}/manifest.json", json.dumps(tiny_entry(origin={"url": url, "parts": PARTS})).encode())
    assert find_entry(f"{server.url}/a", Registry({})).origin.url == server.url + str(tmp_path)
    with pytest.raises(DownloadError, match="only http, https and folders"):
        fetch(find_entry(f"{server.url}/b/manifest.json", Registry({})))
    check_whole(fetch(find_entry(f"{server.url}/c", Registry({}))).folder)


def test_a_pack_from_an_address_is_repaired_by_its_name(server: HubServer) -> None:
    """The place that it came from was recorded, also where the manifest names it relative to itself."""
    server.add_at("/other/manifest.json", json.dumps(tiny_entry(origin={"url": "../mine", "parts": PARTS})).encode())
    folder = fetch(find_entry(f"{server.url}/other", Registry({}))).folder
    (folder / "table.bin").unlink()
    with pytest.raises(PackError, match=r"table\.bin is missing; fetch it again: talkreel pack pull tiny"):
        open_pack("tiny")
    assert fetch(find_entry("tiny", Registry({}))).fetched == len(FILES["table.bin"])
    open_pack("tiny").verify()


def test_a_pack_is_not_taken_for_another(server: HubServer, root: Path) -> None:
    """By a manifest of ours nobody replaces the files of a known pack."""
    known = Registry({"tiny": entry_at(server.url)})
    files = tiny_entry()["files"]
    files["table.bin"]["sha256"] = "0" * 64
    for name, changes in (("same", {}), ("other", {"files": files}), ("ships", {"name": "embedded"})):
        server.add_at(f"/{name}/manifest.json", json.dumps(tiny_entry(origin=None, **changes)).encode())
    assert find_entry(f"{server.url}/same", known).name == "tiny"
    for name, said in (("other", "calls itself tiny"), ("ships", "calls itself embedded")):
        with pytest.raises(PackError, match=said):
            find_entry(f"{server.url}/{name}", known)


def test_what_is_no_manifest(server: HubServer) -> None:
    with pytest.raises(PackError, match="is not JSON"):
        find_entry(f"{server.url}/mine/table.bin?x=.json", Registry({}))
    with pytest.raises(DownloadError, match="answers 404"):
        find_entry(f"{server.url}/none", Registry({}))
    with pytest.raises(PackError, match=r"no pack '\./none' is known"):
        find_entry("./none", Registry({}))


def test_a_newer_manifest_of_the_same_files_is_taken_over_without_fetching(server: HubServer) -> None:
    """A later talkreel says more of a pack that was pulled before."""
    first = fetch(entry_at(server.url + "/mine"))
    server.close()
    again = fetch(entry_at(server.url + "/mine", about="more is known now"))
    assert (again.folder, again.fetched) == (first.folder, 0)
    assert json.loads((again.folder / "manifest.json").read_text())["about"] == "more is known now"


def test_changed_hashes_in_the_registry_fetch_only_what_changed(server: HubServer) -> None:
    entry = entry_at(server.url + "/mine")
    fetch(entry)
    files = tiny_entry()["files"]
    server.change("table.bin", bytes.upper)
    files["table.bin"]["sha256"] = hashlib.sha256(server.file("table.bin")).hexdigest()
    assert fetch(entry_at(server.url + "/mine", files=files)).fetched == len(FILES["table.bin"])
    open_pack("tiny").verify()


def test_a_place_that_cannot_be_written(server: HubServer, root: Path) -> None:
    root.write_text("a file")
    with pytest.raises(OutputError, match="choose another folder by TALKREEL_PACKS"):
        fetch(entry_at(server.url + "/mine"))


def test_removing_frees_every_revision_and_what_was_begun(server: HubServer, root: Path) -> None:
    for revision in ("r1", "r2"):
        fetch(entry_at(server.url + "/mine", revision=revision))
    server.fail("denoiser.onnx", Fault(404), always=True)
    begun = entry_at(server.url + "/mine", revision="r3")
    with pytest.raises(DownloadError):
        fetch(begun)
    assert [one.state for one in list_packs(Registry({"tiny": begun}))] == ["shipped", "pulled", "pulled", "begun"]
    (root / "tiny" / "r1" / "built").mkdir()
    (root / "tiny" / "r1" / "built" / "same.onnx").hardlink_to(root / "tiny" / "r1" / "generator.onnx")
    removed = remove("tiny@r1")
    assert removed.folders == (root / "tiny" / "r1",)
    assert TOTAL <= removed.bytes < TOTAL + 60_000
    assert {folder.name for folder in remove("tiny").folders} == {"r2", ".r3"}
    assert not (root / "tiny").exists()
    for name, said in (("tiny", "pack list"), ("embedded", "ships inside"), ("../x", "not pulled")):
        with pytest.raises(PackError, match=said):
            remove(name)
