"""Packs: the shipped one is whole; damaged ones are refused with the field or file that is wrong."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pipeline.errors import PackError
from pipeline.packs.pack import Pack
from pipeline.packs.specs import (
    CheckSpec,
    DrivingSpec,
    KeyFrameSpec,
    MotionLayout,
    SourceSpec,
    SpeechSpec,
)
from pipeline.packs.store import SHIPPED, open_pack, shipped_packs


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of the embedded pack, to be damaged."""
    folder = tmp_path / "copy"
    shutil.copytree(SHIPPED / "embedded", folder, ignore=shutil.ignore_patterns("authoring", "__pycache__", "*.py"))
    return folder


def edit(folder: Path, *path: str, value: Any) -> None:
    """Change one field of the manifest; None removes it."""
    manifest = json.loads((folder / "manifest.json").read_text("utf-8"))
    inner = manifest
    for name in path[:-1]:
        inner = inner[name]
    if value is None:
        del inner[path[-1]]
    else:
        inner[path[-1]] = value
    (folder / "manifest.json").write_text(json.dumps(manifest), "utf-8")


def test_shipped_packs_are_whole() -> None:
    assert {"embedded", "faces"} <= set(shipped_packs())
    for name in shipped_packs():
        pack = open_pack(name)
        pack.verify()
        assert pack.manifest.commercial_use
        for entry in pack.manifest.files.values():
            assert set(entry.licence.split(" AND ")) <= {"MIT", "Apache-2.0"}
            assert entry.provenance


def test_the_embedded_pack_is_small() -> None:
    files = [path for path in (SHIPPED / "embedded").iterdir() if path.is_file()]
    files += [path for path in (SHIPPED / "faces").iterdir() if path.is_file()]
    assert sum(path.stat().st_size for path in files) < 12e6


def test_every_spec_reads_the_embedded_pack() -> None:
    pack = open_pack()
    speech, layout = SpeechSpec.read(pack), MotionLayout.read(pack)
    assert speech.steps == 12
    assert speech.window_samples == 64000
    assert speech.start_motion.shape == (10, speech.motion_size)
    assert layout.expression.stop - layout.expression.start == 52
    assert SourceSpec.read(pack).keypoints == 478
    DrivingSpec.read(pack).check(478)
    assert KeyFrameSpec.read(pack).fps == 25
    assert CheckSpec.read(pack).jump == 0.22


def test_a_models_memory_is_read_where_the_manifest_states_it(copy: Path) -> None:
    edit(copy, "models", "denoiser", "memory_bytes", value=5 << 20)
    edit(copy, "models", "portrait", "memory_bytes", value=None)
    manifest = Pack.open(copy).manifest
    assert manifest.model("denoiser").memory_bytes == 5 << 20
    assert manifest.model("portrait").memory_bytes is None
    assert all(model.memory_bytes for model in open_pack().manifest.models.values())


def test_motion_decodes_by_mean_and_std_or_min_and_max(copy: Path) -> None:
    edit(copy, "motion", "template", value="template.json")
    edit(copy, "motion", "parts", "expression", value={"columns": [0, 2], "mean": "mean_exp", "std": "std_exp"})
    edit(copy, "motion", "parts", "scale", value={"columns": [2, 3], "min": "low", "max": 3.0})
    (copy / "template.json").write_text(json.dumps({"mean_exp": [1, 2], "std_exp": [10, 20], "low": [1.0]}))
    edit(
        copy,
        "files",
        "template.json",
        value={"bytes": (copy / "template.json").stat().st_size, "sha256": "", "licence": "MIT", "provenance": "test"},
    )
    layout = MotionLayout.read(Pack.open(copy))
    motion = np.array([[1, 1, 0.5]], np.float32)
    np.testing.assert_allclose(layout.expression.decode(motion), [[11, 22]])
    np.testing.assert_allclose(layout.scale.decode(motion), [[2]])


def test_a_folder_is_a_pack(copy: Path) -> None:
    assert open_pack(str(copy)).identity == open_pack().identity


def test_unknown_pack_names_those_there_are() -> None:
    with pytest.raises(PackError, match="embedded"):
        open_pack("nothing-here")


def test_unknown_preset_names_those_there_are() -> None:
    with pytest.raises(PackError, match="preview, quality"):
        open_pack().manifest.preset("huge")


def test_missing_file_is_named(copy: Path) -> None:
    (copy / "denoiser.onnx").unlink()
    with pytest.raises(PackError, match=r"denoiser\.onnx is missing"):
        Pack.open(copy)


def test_short_file_is_named(copy: Path) -> None:
    (copy / "schedule.bin").write_bytes(b"\0" * 100)
    with pytest.raises(PackError, match=r"schedule\.bin has 100 bytes instead of 104"):
        Pack.open(copy)


def test_changed_file_fails_verification(copy: Path) -> None:
    data = bytearray((copy / "schedule.bin").read_bytes())
    data[7] ^= 1
    (copy / "schedule.bin").write_bytes(data)
    with pytest.raises(PackError, match=r"schedule\.bin is damaged"):
        Pack.open(copy).verify()


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("format",), 99),
        (("name",), None),
        (("revision",), 3),
        (("licence", "commercial_use"), "yes"),
        (("models", "denoiser", "inputs", "step", "shape"), "2"),
        (("presets", "quality", "size"), "512"),
        (("models", "denoiser", "memory_bytes"), "16 MiB"),
        (("models", "denoiser", "memory_bytes"), 0),
    ],
)
def test_damaged_manifests_name_the_field(copy: Path, path: tuple[str, ...], value: Any) -> None:
    edit(copy, *path, value=value)
    with pytest.raises(PackError, match=path[-1]):
        Pack.open(copy)


@pytest.mark.parametrize(
    ("path", "read"),
    [
        (("speech", "guidance"), SpeechSpec.read),
        (("speech", "overlap_frames"), SpeechSpec.read),
        (("driving", "rotation"), DrivingSpec.read),
        (("source", "keypoints"), SourceSpec.read),
        (("key_frames", "fps"), KeyFrameSpec.read),
        (("checks", "jump"), CheckSpec.read),
        (("motion", "parts", "scale", "columns"), MotionLayout.read),
        (("motion", "smoothing"), MotionLayout.read),
    ],
)
def test_damaged_sections_name_the_field(copy: Path, path: tuple[str, ...], read: Any) -> None:
    edit(copy, *path, value="wrong")
    with pytest.raises(PackError, match=path[-1]):
        read(Pack.open(copy))


@pytest.mark.parametrize("frames", [-1, 91])
def test_windows_overlap_no_further_than_what_they_start_from(copy: Path, frames: int) -> None:
    edit(copy, "speech", "overlap_frames", value=frames)
    with pytest.raises(PackError, match="overlap_frames must be a whole number from 0 to 90"):
        SpeechSpec.read(Pack.open(copy))


@pytest.mark.parametrize("name", ["../outside.onnx", "/etc/passwd"])
def test_files_stay_inside_the_folder(copy: Path, name: str) -> None:
    edit(copy, "models", "denoiser", "file", value=name)
    pack = Pack.open(copy)
    with pytest.raises(PackError, match="outside"):
        pack.model_path(pack.manifest.model("denoiser"))


def test_no_manifest_is_said(tmp_path: Path) -> None:
    with pytest.raises(PackError, match="cannot be read"):
        Pack.open(tmp_path)
    (tmp_path / "manifest.json").write_text("not json")
    with pytest.raises(PackError, match="not JSON"):
        Pack.open(tmp_path)


def test_the_identity_is_what_films_depend_on(copy: Path) -> None:
    """Settings in the manifest count as the files do; the place where it was fetched from does not."""
    edit(copy, "origin", value={"url": "https://mirror.example.invalid/"})
    assert open_pack(str(copy)).identity == open_pack().identity
    edit(copy, "speech", "guidance", value=1.15)
    assert open_pack(str(copy)).identity != open_pack().identity
