"""`talkreel pack pull` as users have it: a process, a hub, a disk, and what goes wrong with each."""

from __future__ import annotations

import json
import random
import resource
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.hub_server import Fault, HubServer
from tests.pipeline.packs.tiny_pack import FILES, PARTS, REVISION, TOTAL, User, serve_tiny, tiny_entry


@pytest.fixture
def hub() -> Iterator[HubServer]:
    with HubServer() as server:
        serve_tiny(server)
        yield server


@pytest.fixture
def user(tmp_path: Path, hub: HubServer) -> User:
    return User(tmp_path, hub)


def test_from_scratch(user: User, hub: HubServer) -> None:
    """Parts are joined, the licence is shown and recorded, the token goes to the hub and not to where it redirects."""
    user.env["HF_TOKEN"] = "hf_secret"
    done = user.pull("--json")
    assert done.returncode == 0, done.stderr
    user.check_whole()
    assert "licence: MIT; commercial use allowed" in done.stderr
    said = json.loads(done.stdout)
    assert (said["name"], said["folder"], said["fetched_bytes"]) == ("tiny", str(user.folder), TOTAL)
    record = json.loads((user.folder / "pulled.json").read_text())
    assert record["licence"]["files"] == dict.fromkeys(FILES, "MIT")
    assert record["origin"] == "hub someone/tiny-pack at 0123abc"
    tokens = {(request.cdn, request.headers.get("authorization")) for request in hub.requests}
    assert tokens == {(False, "Bearer hf_secret"), (True, None)}
    again = user.run("path", "tiny", "--registry", str(user.registry))
    assert again.stdout.strip() == str(user.folder)


def test_after_kills_at_random_bytes(user: User, hub: HubServer) -> None:
    """The hub kills the process after so many bytes; the last pull ends what the others began."""
    hub.pause = 0.002
    numbers = random.Random(11)
    for _ in range(3):
        limit = hub.sent() + numbers.randrange(1, TOTAL // 4)
        process = user.start("pull", "tiny", "--registry", str(user.registry))

        def kill(sent: int, limit: int = limit, process: subprocess.Popen[str] = process) -> None:
            if sent >= limit:
                process.kill()

        hub.on_sent = kill
        process.communicate(timeout=60)
        assert process.returncode == -signal.SIGKILL
        assert not user.folder.exists()
    hub.on_sent = None
    done = user.pull()
    assert done.returncode == 0, done.stderr
    user.check_whole()


def test_an_interrupted_pull_ends_at_once(user: User, hub: HubServer) -> None:
    """Though the server is silent; what came is kept."""
    hub.pause = 0.01
    process = user.start("pull", "tiny", "--registry", str(user.registry))

    def interrupt(sent: int) -> None:
        if sent > TOTAL // 2 and hub.pause < 1:
            hub.pause = 600
            process.send_signal(signal.SIGINT)

    hub.on_sent = interrupt
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert said.endswith("talkreel: interrupted\n")
    assert user.folder.with_name(f".{REVISION}").is_dir()


def test_a_flipped_byte_is_refused_and_the_file_named(user: User, hub: HubServer) -> None:
    name = "generator.onnx.part-ab"
    good = hub.file(name)
    hub.change(name, lambda data: data[:777] + bytes([data[777] ^ 1]) + data[778:])
    done = user.pull()
    assert done.returncode == 2
    assert "pack tiny: generator.onnx is damaged" in done.stderr
    assert "was removed" in done.stderr
    assert not user.folder.exists()
    assert not (user.folder.with_name(f".{REVISION}") / "files" / "generator.onnx").exists()
    hub.change(name, lambda data: good)
    assert user.pull().returncode == 0
    user.check_whole()


def test_a_truncated_part_is_refused_before_anything_is_fetched(user: User, hub: HubServer) -> None:
    hub.change("encoder.onnx.part-ab", lambda data: data[:-1])
    done = user.pull()
    assert done.returncode == 2
    assert (
        "the parts of speech/encoder.onnx have [60001, 60000, 59999] bytes, 180000 together instead of 180001"
        in done.stderr
    )
    assert hub.sent() == 0
    assert user.leftovers() == []


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path | None]:
    """A disk of 256 KiB, or None where this user may not mount one."""
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(place)]
    mounted = subprocess.run(mount, capture_output=True, check=False).returncode == 0
    yield place if mounted else None
    if mounted:
        subprocess.run(["umount", str(place)], check=True)


def limit_files() -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (150_000, 150_000))


def test_a_full_disk_is_said_and_nothing_is_left(user: User, hub: HubServer, small_disk: Path | None) -> None:
    if small_disk is not None:
        user.packs = small_disk / "packs"
        user.env["TALKREEL_PACKS"] = str(user.packs)
    done = user.pull(limit=None if small_disk else limit_files)
    assert done.returncode == 1
    assert ("pack tiny needs 0.3 MB more on the disk" if small_disk else "does not fit") in done.stderr
    assert "TALKREEL_PACKS" in done.stderr
    assert done.stderr.count("\n") == 3
    assert user.leftovers() == []
    assert hub.sent() == 0


def test_a_limit_that_shows_only_while_writing_is_said_and_nothing_is_left(user: User) -> None:
    """A quota, another process that fills the disk, a limit on files: found out when the space is taken."""
    done = user.pull(limit=limit_files)
    assert done.returncode == 1
    assert "pack tiny does not fit on the disk" in done.stderr
    assert user.leftovers() == []


def test_four_at_once_fetch_every_byte_once(user: User, hub: HubServer) -> None:
    hub.pause = 0.01
    processes = [user.start("pull", "tiny", "--registry", str(user.registry)) for _ in range(4)]
    ends = [(*process.communicate(timeout=120), process.returncode) for process in processes]
    assert [code for _, _, code in ends] == [0] * 4, ends
    user.check_whole()
    pieces = {f"{name}.part-{ending}" for name, endings in PARTS.items() for ending in endings}
    pieces |= {name for name in FILES if name not in PARTS}
    sent = {path.partition(f"/{REVISION}/")[2]: count for path, count in hub.sent_by_path().items()}
    assert sent == {piece: len(hub.file(f"/{piece}")) for piece in pieces}


def test_verify_finds_a_byte_flipped_later_and_pull_repairs(user: User, hub: HubServer) -> None:
    assert user.pull().returncode == 0
    with (user.folder / "denoiser.onnx").open("r+b") as file:
        file.seek(20_000)
        byte = file.read(1)
        file.seek(20_000)
        file.write(bytes([byte[0] ^ 4]))
    found = user.run("verify", "tiny", "--registry", str(user.registry))
    assert found.returncode == 2
    assert "denoiser.onnx is damaged" in found.stderr
    assert "talkreel pack pull tiny" in found.stderr
    before = hub.sent()
    assert user.pull().returncode == 0
    assert hub.sent() - before == len(FILES["denoiser.onnx"])
    user.check_whole()


def test_offline_nothing_is_asked_for(user: User, hub: HubServer) -> None:
    user.env["HF_HUB_OFFLINE"] = "1"
    done = user.pull()
    assert done.returncode == 2
    assert "HF_HUB_OFFLINE is set" in done.stderr
    assert hub.requests == []
    assert user.leftovers() == []


def test_a_proxy_is_used(user: User, hub: HubServer) -> None:
    """The endpoint's host does not exist: only the proxy can answer for it."""
    hub.redirect_above = TOTAL
    user.env |= {"HF_ENDPOINT": "http://hub.example.invalid", "HTTP_PROXY": hub.url}
    assert user.pull().returncode == 0
    user.check_whole()
    assert {request.proxied for request in hub.requests} == {True}
    assert {request.headers["host"] for request in hub.requests} == {"hub.example.invalid"}


def test_hosts_that_need_no_proxy(user: User, hub: HubServer) -> None:
    user.env |= {"HTTP_PROXY": "http://127.0.0.1:9", "NO_PROXY": "127.0.0.1,localhost"}
    assert user.pull().returncode == 0
    user.check_whole()
    assert {request.proxied for request in hub.requests} == {False}


def test_a_licence_without_commercial_use_is_to_be_accepted(user: User, hub: HubServer) -> None:
    user.know(tiny_entry(licence={"summary": "CC BY-NC 4.0", "commercial_use": False}))
    done = user.pull()
    assert done.returncode == 2
    assert "licence: CC BY-NC 4.0; NO commercial use" in done.stderr
    assert "forbids commercial use; if that suits you: --accept-licence" in done.stderr
    assert hub.requests == []
    assert user.leftovers() == []
    assert user.pull("--accept-licence").returncode == 0
    assert json.loads((user.folder / "pulled.json").read_text())["licence"] == {
        "summary": "CC BY-NC 4.0",
        "commercial_use": False,
        "accepted": True,
        "files": dict.fromkeys(FILES, "MIT"),
    }


def test_a_server_in_trouble_is_asked_again(user: User, hub: HubServer) -> None:
    hub.fail("denoiser.onnx", Fault(503, {"Retry-After": "0"}), Fault(429, {"RateLimit": '"api";r=0;t=0'}))
    hub.fail("generator.onnx.part-aa", Fault(cut=20_000), Fault(cut=1))
    assert user.pull().returncode == 0
    user.check_whole()
    sent = [request for request in hub.requests if request.path.endswith("generator.onnx.part-aa") and request.sent]
    assert [request.start for request in sent] == [0, 20_000, 20_001]


def test_a_manifest_at_any_address(user: User, hub: HubServer) -> None:
    """No registry knows it; its files lie beside it. The hub's token stays away."""
    user.env |= {"HF_TOKEN": "hf_secret", "HF_ENDPOINT": "http://hub.example.invalid"}
    hub.add_at("/mine/manifest.json", json.dumps(tiny_entry(origin=None)).encode())
    hub.redirect_above = TOTAL
    for name, data in FILES.items():
        hub.add_at(f"/mine/{name}", data)
    done = user.run("pull", f"{hub.url}/mine/manifest.json")
    assert done.returncode == 0, done.stderr
    user.check_whole()
    assert {request.headers.get("authorization") for request in hub.requests} == {None}
