"""`talkreel pack`: what the commands print."""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path

import pytest

from pipeline.cli.main import main
from pipeline.cli.packs.progress import PullProgress
from pipeline.packs.store import SHIPPED


@pytest.fixture(autouse=True)
def pulled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A pack called mine, and no other."""
    monkeypatch.setenv("TALKREEL_PACKS", str(tmp_path / "packs"))
    folder = tmp_path / "packs" / "mine" / "r1"
    shutil.copytree(SHIPPED / "embedded", folder, ignore=shutil.ignore_patterns("authoring", "__pycache__", "*.py"))
    manifest = json.loads((folder / "manifest.json").read_text())
    licence = {"summary": "CC BY-NC 4.0", "commercial_use": False}
    manifest |= {"name": "mine", "revision": "r1", "about": "A test.", "licence": licence}
    (folder / "manifest.json").write_text(json.dumps(manifest))
    return folder


def said(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> str:
    assert main(["pack", *arguments]) == code
    captured = capsys.readouterr()
    return captured.err if code else captured.out


def test_list(capsys: pytest.CaptureFixture[str], pulled: Path) -> None:
    lines = said(capsys, "list").splitlines()
    assert [line.split()[0] for line in lines] == ["embedded", "mine", "timeline-studio", "liveportrait-onnx"]
    assert "pulled" in lines[1]
    assert lines[1].endswith("CC BY-NC 4.0, no commercial use")
    assert "can be pulled    949.6 MB" in lines[2]
    found = {one["name"]: one for one in json.loads(said(capsys, "list", "--json"))}
    assert found["mine"]["folder"] == str(pulled)
    assert found["timeline-studio"]["state"] == "known"
    assert found["timeline-studio"]["folder"] is None


def test_info_of_packs_here_and_elsewhere(capsys: pytest.CaptureFixture[str], pulled: Path) -> None:
    text = said(capsys, "info", "mine")
    for part in ("mine, revision r1", "A test.", "NO commercial use", str(pulled), "denoiser.onnx", "quality: 512 px"):
        assert part in text
    text = said(capsys, "info", "timeline-studio")
    for part in ("not here; talkreel pack pull timeline-studio", "hub haixin/timeline-studio-onnx-models at a201b6"):
        assert part in text
    data = json.loads(said(capsys, "info", "liveportrait-onnx", "--json"))
    assert data["folder"] is None
    assert data["manifest"]["files"]["landmark.onnx"]["bytes"] == 114666491


def test_path(capsys: pytest.CaptureFixture[str], pulled: Path) -> None:
    assert said(capsys, "path", "mine") == f"{pulled}\n"
    assert "pull it: talkreel pack pull timeline-studio" in said(capsys, "path", "timeline-studio", code=2)


def test_verify_names_every_damaged_file(capsys: pytest.CaptureFixture[str], pulled: Path) -> None:
    assert [one["name"] for one in json.loads(said(capsys, "verify", "--json"))] == ["embedded", "mine"]
    for name in ("schedule.bin", "conditioning.bin"):
        path = pulled / name
        path.write_bytes(bytes([path.read_bytes()[0] ^ 1]) + path.read_bytes()[1:])
    text = said(capsys, "verify", code=2)
    assert "schedule.bin is damaged" in text
    assert "conditioning.bin is damaged" in text
    assert text.endswith("fetch it again: talkreel pack pull mine\n")


def packs_by_doctor(capsys: pytest.CaptureFixture[str]) -> tuple[dict[str, str], list[str]]:
    main(["doctor", "--json"])
    found = json.loads(capsys.readouterr().out)
    return found["packs"], found["problems"]


def test_doctor_tells_of_pulled_packs(capsys: pytest.CaptureFixture[str], pulled: Path) -> None:
    """Also of a damaged one, and where the list of known packs is."""
    older = pulled.with_name("r0")
    shutil.copytree(pulled, older)
    (older / "denoiser.onnx").write_bytes(bytes((older / "denoiser.onnx").stat().st_size))
    os.utime(older / "manifest.json", (0, 0))
    packs, problems = packs_by_doctor(capsys)
    assert list(packs) == ["embedded", "faces", "mine", "mine@r0"]
    assert "hashes good" in packs["embedded"]
    assert packs["mine"].endswith("MB, usable, CC BY-NC 4.0")
    assert packs["mine@r0"] == "not usable"
    assert [str(older / "denoiser.onnx") in problem for problem in problems] == [True]


def test_doctor_goes_on_without_a_list_of_known_packs(
    capsys: pytest.CaptureFixture[str], pulled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TALKREEL_REGISTRY", str(pulled / "none.json"))
    (pulled / "built" / "cpu-0").mkdir(parents=True)
    (pulled / "built" / "cpu-0" / "manifest.json").write_text("not JSON")
    packs, problems = packs_by_doctor(capsys)
    assert packs["mine"].endswith("usable, CC BY-NC 4.0")
    assert packs["builds of mine"] == "not usable"
    assert "none.json cannot be read" in problems[0]
    assert "remove that folder and build again" in problems[1]


def test_remove(capsys: pytest.CaptureFixture[str], pulled: Path) -> None:
    assert str(pulled) in said(capsys, "remove", "mine")
    assert not pulled.parent.exists()
    assert "was not pulled" in said(capsys, "remove", "mine", code=2)


def test_what_there_is_nothing_to_pull_of(capsys: pytest.CaptureFixture[str]) -> None:
    assert "ships inside" in said(capsys, "pull", "embedded", code=2)
    assert "no pack 'none' is known" in said(capsys, "pull", "none", code=2)


def test_without_huggingface_hub_the_extra_is_named(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    assert 'pip install "talkreel[hub]"' in said(capsys, "pull", "timeline-studio", code=1)


def test_progress_elsewhere_than_on_a_terminal_is_a_line_a_file(capsys: pytest.CaptureFixture[str]) -> None:
    with PullProgress() as progress:
        for done in (0, 500_000, 1_000_000, 1_000_000):
            progress("a/b.onnx", done, 1_000_000)
        progress("there.before", 5, 5)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1
    assert lines[0].startswith("a/b.onnx: 1.0 MB at ")
    with PullProgress(every=0) as progress:
        progress("a", 0, 3_000_000)
        progress("b", 1_000_000, 2_000_000)
        progress("b", 1_500_000, 2_000_000)
    assert [line.partition(", at ")[0] for line in capsys.readouterr().err.splitlines()] == [
        "0.0 MB so far",
        "0.0 MB so far",
        "0.5 MB so far",
    ]
    with PullProgress(quiet=True) as progress:
        progress("a", 0, 1)
        progress("a", 1, 1)
    assert capsys.readouterr().err == ""
