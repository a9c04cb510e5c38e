"""Known packs: the shipped registry says what was published; damaged ones are refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pipeline.errors import PackError
from pipeline.packs.registry import SHIPPED_REGISTRY, read_registry

TIMELINE_STUDIO = """
joyvasa/joyvasa-audio.onnx 378452736 51629927a44e13b117c163f8466b7eaa6653ffba71b0d26b8091610497ebf7d8 aa-ah
joyvasa/joyvasa-denoiser.onnx 33558033 6e0ea70203df8db5cdd663c75c1764134b207b87f2897ff4e53d279aa3f54928
joyvasa/joyvasa-conditioning.bin 14184 89e571e6b1491a88eeedfa7f17ba3ff43e70800e1daa6f544c1366c195dbd6ba
joyvasa/joyvasa-schedule.bin 408 8ef96b44a0673a6f699b0fa4c6259d89db183cd6d0f8b483203bd84ca8baa828
joyvasa/joyvasa-motion-template.json 9014 f321337873a5b646ca26f80e97edd0efdc9d3c0f63d3a9d09ad7fb72d7d7f828
liveportrait-webgpu/liveportrait-appearance_feature_extractor.onnx 3355896 \
e9cd2bd864a970f25bbe660e132778fc7f81a4f32945a97940a6225c8b2dafb0
liveportrait-webgpu/liveportrait-motion-extractor.onnx 112593241 \
6be4dcb59827a5c9af587c8d7eb07bc9f5128ea01856e9b78cf7db316787cf86 aa-ac
liveportrait-webgpu/liveportrait-stitching.onnx 182363 28b5fd0b97f3cee29b37b24937f2fa294d1548799b8a16d3cfe70fab1f49c785
liveportrait-webgpu/liveportrait-generator-preview-fp16.onnx 210713705 \
5fdb50d2fdaf1d52a65f39dddf7b79c968725eaae735418f5494831ba4d45706 aa-ae
liveportrait-webgpu/liveportrait-generator-quality-fp16.onnx 210713678 \
1b4630bfbe499dd1d28697fa1e479ab4b305c80421aa485bfd04d36698c6fe7f aa-ae
"""
LIVEPORTRAIT = """
generator_fix_grid.onnx 421238874 44effc5f2129c03353feb56bb8db7828346c36e81ffbacb4ab0622b3d91d2c77
landmark.onnx 114666491 31d22a5041326c31f19b78886939a634a5aedcaa5ab8b9b951a1167595d147db
warping.onnx 182274422 3dbdccbd99417da27d8280111f18990bbaaebf54d08435e25bb48ef6ecf0bbf7
spade_generator.onnx 221924849 16c815413f4b56537af1eca6cf92b83221d6ee8f5f9f65212c533a4dc8ae155d
stitching_lip.onnx 150609 33489d795915b78a8e96787c42c367cac23a0d5d3d2bd3efbb4af5ee758d42bb
"""


@pytest.mark.parametrize(
    ("name", "hub", "revision", "table"),
    [
        (
            "timeline-studio",
            "haixin/timeline-studio-onnx-models",
            "a201b681c8f96672b5c3f624e32d4dc932f150af",
            TIMELINE_STUDIO,
        ),
        ("liveportrait-onnx", "dyicnc/Live-Portrait-ONNX", "e6c5d2407593a39f29c92ffd5ea3eaf5e59d52a1", LIVEPORTRAIT),
    ],
)
def test_the_shipped_entries_are_the_published_packs(name: str, hub: str, revision: str, table: str) -> None:
    """What was published, copied here: every path, size, hash, number of parts, revision and licence."""
    entry = read_registry(SHIPPED_REGISTRY).entry(name)
    assert (entry.origin.hub, entry.origin.revision, entry.revision) == (hub, revision, revision)
    published, parts = {}, {}
    for line in table.split("\n"):
        if line:
            path, size, sha256, *letters = line.split()
            published[path] = (int(size), sha256)
            if letters:
                parts[path] = tuple(f"a{chr(n)}" for n in range(ord("a"), ord(letters[0][-1]) + 1))
    assert {path: (file.bytes, file.sha256) for path, file in entry.manifest.files.items()} == published
    assert entry.origin.parts == parts
    assert {file.licence for file in entry.manifest.files.values()} == {"MIT"}
    assert all(file.provenance for file in entry.manifest.files.values())
    assert entry.manifest.commercial_use
    assert entry.manifest.licence.startswith("MIT")


def test_pieces_are_named_in_order() -> None:
    origin = read_registry(SHIPPED_REGISTRY).entry("timeline-studio").origin
    extractor = "liveportrait-webgpu/liveportrait-motion-extractor.onnx"
    assert origin.pieces(extractor) == [f"{extractor}.part-aa", f"{extractor}.part-ab", f"{extractor}.part-ac"]
    assert origin.pieces("joyvasa/joyvasa-schedule.bin") == ["joyvasa/joyvasa-schedule.bin"]


def test_what_ships_is_known_and_not_to_be_pulled() -> None:
    registry = read_registry(SHIPPED_REGISTRY)
    assert list(registry.entries) == ["embedded", "timeline-studio", "liveportrait-onnx"]
    with pytest.raises(PackError, match="ships inside"):
        registry.entry("embedded")
    with pytest.raises(PackError, match=r"no pack 'other' is known; known: embedded, timeline-studio"):
        registry.entry("other")


def entry(**changes: Any) -> dict[str, Any]:
    made: dict[str, Any] = {
        "format": 1,
        "name": "tiny",
        "revision": "r1",
        "licence": {"summary": "MIT", "commercial_use": True},
        "files": {"a/b.bin": {"bytes": 3, "sha256": "0" * 64, "licence": "MIT", "provenance": "here"}},
        "models": {},
        "origin": {"hub": "someone/some", "revision": "abc", "parts": {"a/b.bin": ["aa", "ab"]}},
    }
    return {key: value for key, value in (made | changes).items() if value is not None}


def write(path: Path, **changes: Any) -> Path:
    path.write_text(json.dumps({"format": 1, "packs": {"tiny": entry(**changes)}}))
    return path


def test_a_file_and_a_variable_replace_the_shipped_registry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "registry.json")
    assert list(read_registry(path).entries) == ["tiny"]
    monkeypatch.setenv("TALKREEL_REGISTRY", str(path))
    assert list(read_registry().entries) == ["tiny"]
    assert read_registry().entry("tiny").bytes == 3


@pytest.mark.parametrize(
    "name", ["../x", "/x", "a/../../x", "c:/x", "a\\b", "", "a//b", "./a", "a\nb", "manifest.json"]
)
def test_files_that_lead_elsewhere_are_refused(tmp_path: Path, name: str) -> None:
    file = {"bytes": 1, "sha256": "0" * 64, "licence": "MIT", "provenance": "here"}
    with pytest.raises(PackError, match="do not use this pack"):
        read_registry(write(tmp_path / "registry.json", files={name: file}, source={"url": "http://x/"}))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"name": "other"}, "name must be 'tiny'"),
        ({"revision": "../r"}, "revision of pack tiny"),
        ({"revision": ".hidden"}, "revision of pack tiny"),
        ({"origin": None}, "origin must be"),
        ({"origin": {}}, r"origin\.url must be"),
        ({"origin": {"hub": "a/b"}}, r"origin\.revision must be"),
        ({"origin": {"url": "http://x/", "parts": {"none.bin": ["aa"]}}}, r"parts\.none\.bin must be"),
        ({"origin": {"url": "http://x/", "parts": {"a/b.bin": ["/../aa"]}}}, "ending"),
        ({"files": {"a": {"bytes": 1, "sha256": "12", "licence": "MIT", "provenance": "x"}}}, "SHA-256"),
        ({"format": 2}, "has format 2"),
    ],
)
def test_damaged_entries_are_named(tmp_path: Path, changes: dict[str, Any], said: str) -> None:
    with pytest.raises(PackError, match=said):
        read_registry(write(tmp_path / "registry.json", **changes))


def test_a_registry_of_another_format_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "registry.json"
    path.write_text('{"format": 7, "packs": {}}')
    with pytest.raises(PackError, match="has format 7"):
        read_registry(path)
    with pytest.raises(PackError, match="cannot be read"):
        read_registry(tmp_path / "none.json")
