"""Stand-ins have the published names, tensors, parts and sizes, and are the same for the same seed."""

from __future__ import annotations

import copy
import hashlib
import json
from functools import cache, partial
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto

from pipeline.graphs.standins import AbsentWeights
from pipeline.packs.pack import Pack
from pipeline.packs.pull import pull
from pipeline.packs.registry import SHIPPED_REGISTRY, read_registry
from pipeline.packs.standins import write_pack
from pipeline.packs.standins.__main__ import main
from pipeline.packs.standins.contents import contents
from pipeline.packs.standins.widths import PUBLISHED
from pipeline.packs.store import open_pack
from pipeline.runtime.library import onnxruntime
from tests.hub_server import HubServer

F32, I64 = "tensor(float)", "tensor(int64)"
GENERATOR = {"feature_3d": [1, 32, 16, 64, 64], "kp_source": [1, 21, 3], "kp_driving": [1, 21, 3]}
TENSORS: dict[str, tuple[dict[str, list[int]], dict[str, list[int]]]] = {
    "joyvasa/joyvasa-audio.onnx": ({"audio_padded": [1, 64080]}, {"audio_features": [1, 100, 256]}),
    "joyvasa/joyvasa-denoiser.onnx": (
        {
            "motion": [2, 100, 73],
            "audio": [2, 100, 256],
            "previous_motion": [2, 10, 73],
            "previous_audio": [2, 10, 256],
            "step": [2],
        },
        {"motion_prediction": [2, 110, 73]},
    ),
    "liveportrait-webgpu/liveportrait-appearance_feature_extractor.onnx": (
        {"img": [1, 3, 256, 256]},
        {"output": [1, 32, 16, 64, 64]},
    ),
    "liveportrait-webgpu/liveportrait-motion-extractor.onnx": (
        {"img": [1, 3, 256, 256]},
        {
            **{"pitch": [1, 66], "yaw": [1, 66], "roll": [1, 66], "t": [1, 3]},
            **{"exp": [1, 63], "scale": [1, 1], "kp": [1, 63]},
        },
    ),
    "liveportrait-webgpu/liveportrait-stitching.onnx": ({"input": [1, 126]}, {"output": [1, 65]}),
    "liveportrait-webgpu/liveportrait-generator-preview-fp16.onnx": (GENERATOR, {"out": [1, 3, 256, 256]}),
    "liveportrait-webgpu/liveportrait-generator-quality-fp16.onnx": (GENERATOR, {"out": [1, 3, 512, 512]}),
}
"""Tensors of timeline-studio's models."""


@pytest.mark.parametrize("file", TENSORS)
def test_the_published_tensors(file: str, published: Pack) -> None:
    session = onnxruntime().InferenceSession(str(published.path(file)), providers=["CPUExecutionProvider"])
    given, made = TENSORS[file]
    assert {node.name: node.shape for node in session.get_inputs()} == given
    assert {node.name: node.shape for node in session.get_outputs()} == made
    for node in (*session.get_inputs(), *session.get_outputs()):
        assert node.type == (I64 if node.name == "step" else F32)


@pytest.mark.parametrize("file", TENSORS)
def test_the_shipped_manifest_names_the_published_tensors(file: str) -> None:
    models = read_registry(SHIPPED_REGISTRY).entry("timeline-studio").manifest.models
    (spec,) = (model for model in models.values() if model.file == file)
    given, made = TENSORS[file]
    assert {tensor.name: list(tensor.shape) for tensor in spec.inputs.values()} == given
    assert {tensor.name: list(tensor.shape) for tensor in spec.outputs.values()} == made


def test_tables_have_the_published_lengths(published: Pack) -> None:
    """Layouts of the tables; the schedule is the published one, too."""
    assert published.manifest.files["joyvasa/joyvasa-conditioning.bin"].bytes == 14184
    schedule = published.floats("joyvasa/joyvasa-schedule.bin").reshape(51, 2)
    with np.load(Path(__file__).parents[3] / "data/golden/sampler.npz") as golden:
        np.testing.assert_allclose(schedule[:, 0], golden["alphas"], atol=2e-6)
        np.testing.assert_allclose(schedule[:, 1], golden["alpha_bars"], atol=1e-6)
    lengths = {name: len(values) for name, values in published.json("joyvasa/joyvasa-motion-template.json").items()}
    angles = {f"{end}_{name}": 1 for end in ("min", "max") for name in ("scale", "pitch", "yaw", "roll")}
    assert lengths == {"mean_exp": 63, "std_exp": 63, "min_t": 3, "max_t": 3, **angles}


def test_published_generators_keep_volumes_in_convolutions_alone(published: Pack) -> None:
    """As published: no GridSample of a volume, 13 rank-5 convolutions, halved weights, float32 edges."""
    model = onnx.load(published.path("liveportrait-webgpu/liveportrait-generator-quality-fp16.onnx"))
    ranks = {value.name: len(value.type.tensor_type.shape.dim) for value in model.graph.value_info}
    tensors = {tensor.name: tensor for tensor in model.graph.initializer}
    assert [ranks[node.input[0]] for node in model.graph.node if node.op_type == "GridSample"].count(5) == 0
    weights = [tensors[node.input[1]] for node in model.graph.node if node.op_type == "Conv"]
    assert [len(tensor.dims) for tensor in weights].count(5) == 13
    halved = sum(prod(tensor.dims) for tensor in weights if tensor.data_type == TensorProto.FLOAT16)
    assert halved > 0.9 * sum(prod(tensor.dims) for tensor in weights)


@cache
def full_size(name: str) -> dict[str, int]:
    """Bytes of a full-size pack's files, but for the converted generators: those take minutes to make, and the
    command compares their sizes itself."""
    sizes = {}
    for file, make in contents(PUBLISHED, 0, AbsentWeights())[name].items():
        if file.endswith("fp16.onnx"):
            continue
        made = make()
        if isinstance(made, bytes):
            sizes[file] = len(made)
        else:
            absent = sum(4 * prod(t.dims) for t in made.graph.initializer if not t.raw_data)
            sizes[file] = made.ByteSize() + absent
    return sizes


@pytest.mark.parametrize(("name", "files"), [("timeline-studio", 8), ("liveportrait-onnx", 5)])
def test_full_size_files_have_the_published_bytes(name: str, files: int) -> None:
    published = read_registry(SHIPPED_REGISTRY).entry(name).manifest.files
    assert len(full_size(name)) == files
    for file, size in full_size(name).items():
        assert size == pytest.approx(published[file].bytes, rel=0.05), file


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """The tree of a hub, and its registry, as the command writes them."""
    root, registry = tmp_path_factory.mktemp("hub"), tmp_path_factory.mktemp("registry") / "registry.json"
    assert main([str(root), "--small", "--registry", str(registry)]) == 0
    return root, json.loads(registry.read_text())


def test_pulled_by_name_they_are_the_pack(
    hub: tuple[Path, dict[str, Any]], published: Pack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What tests show of a folder that was written holds for the pack that a user pulls."""
    root, registry = hub
    (tmp_path / "registry.json").write_text(json.dumps(registry))
    monkeypatch.setenv("TALKREEL_PACKS", str(tmp_path / "packs"))
    monkeypatch.setenv("TALKREEL_REGISTRY", str(tmp_path / "registry.json"))
    with HubServer(redirect_above=1_000_000) as server:
        monkeypatch.setenv("HF_ENDPOINT", server.url)
        for path in filter(Path.is_file, root.rglob("*")):
            owner, repository, _, revision, *names = path.relative_to(root).parts
            server.add(f"{owner}/{repository}", revision, "/".join(names), path)
        pull(read_registry().entry("timeline-studio"))
    pulled = open_pack("timeline-studio")
    pulled.verify()
    assert pulled.identity == published.identity
    assert pulled.folder == tmp_path / "packs" / "timeline-studio" / pulled.revision


def test_a_hub_of_them_has_the_published_parts_and_a_registry_that_differs_in_sizes_and_hashes(
    hub: tuple[Path, dict[str, Any]],
) -> None:
    root, registry = hub[0], copy.deepcopy(hub[1])
    shipped = json.loads(SHIPPED_REGISTRY.read_text("utf-8"))
    for name in ("timeline-studio", "liveportrait-onnx"):
        entry, source = registry["packs"][name], registry["packs"][name]["origin"]
        place = root / source["hub"] / "resolve" / source["revision"]
        names = set()
        for file, facts in entry["files"].items():
            pieces = [f"{file}.part-{ending}" for ending in source.get("parts", {}).get(file, ())] or [file]
            data = b"".join((place / piece).read_bytes() for piece in pieces)
            assert all((place / piece).stat().st_size for piece in pieces)
            assert facts["bytes"] == len(data)
            assert facts["sha256"] == hashlib.sha256(data).hexdigest()
            names |= set(pieces)
            facts |= {key: shipped["packs"][name]["files"][file][key] for key in ("bytes", "sha256")}
        assert {str(path.relative_to(place)) for path in place.rglob("*") if path.is_file()} == names
    assert registry == shipped


def test_a_seed_gives_the_same_files_and_another_seed_others(published: Pack) -> None:
    def networks(seed: int) -> list[bytes]:
        files = contents(PUBLISHED, seed)["timeline-studio"]
        made = [
            files[file]()
            for file in ("liveportrait-webgpu/liveportrait-stitching.onnx", "joyvasa/joyvasa-conditioning.bin")
        ]
        return [one if isinstance(one, bytes) else one.SerializeToString(deterministic=True) for one in made]

    assert networks(1) == networks(1)
    assert all(one != other for one, other in zip(networks(1), networks(2), strict=True))
    published.verify()


def test_a_file_whose_size_is_not_the_published_one_fails_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """By more than 5 %; narrow networks are meant to be smaller."""
    sizes = {"a.bin": 104, "b.bin": 106, "c.bin": 94}
    makes = {"one": {name: partial(bytes, size) for name, size in sizes.items()}}
    monkeypatch.setattr("pipeline.packs.standins.writing.contents", lambda widths, seed: makes)
    files = {name: {"bytes": 100, "sha256": "", "licence": "MIT", "provenance": "here"} for name in sizes}
    (tmp_path / "registry.json").write_text(json.dumps({"format": 1, "packs": {"one": {"files": files}}}))
    words = [str(tmp_path / "made"), "--name", "one", "--opened", "--of", str(tmp_path / "registry.json")]
    assert main(words) == 1
    assert capsys.readouterr().err.splitlines() == [
        "b.bin is +6.0% off the published size",
        "c.bin is -6.0% off the published size",
    ]
    assert main([*words, "--small"]) == 0


def test_an_unknown_pack_is_refused(tmp_path: Path) -> None:
    with pytest.raises(KeyError):
        write_pack(tmp_path, "embedded")
