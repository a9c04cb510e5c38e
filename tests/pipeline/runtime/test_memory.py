"""What models take, predicted; a preset that does not fit is refused with figures."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from pipeline.errors import PackError, TooLittleMemoryError
from pipeline.machine import memory_allowed
from pipeline.packs.pack import MANIFEST, Pack
from pipeline.packs.store import open_pack
from pipeline.render import render
from pipeline.runtime import memory
from pipeline.runtime.memory import memory_for_models, memory_needed, predict, require_memory
from pipeline.runtime.models import Models
from pipeline.runtime.options import RuntimeOptions
from pipeline.runtime.providers import parse_rungs
from pipeline.runtime.residents import Residents
from tests.small_pack import build_small_pack

MIB = 1 << 20


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Pack:
    return build_small_pack(tmp_path_factory.mktemp("packs") / "small", layers=3)


def test_the_manifest_s_figure_counts_once_a_run_side_by_side() -> None:
    pack = open_pack()
    spec = pack.manifest.model("generator_256")
    assert spec.parallel == "runs"
    assert predict(pack, spec, RuntimeOptions(threads=3)).bytes == 3 * spec.memory_bytes
    assert predict(pack, spec, RuntimeOptions(threads=3)).source == "manifest"
    appearance = pack.manifest.model("appearance")
    assert appearance.parallel == "operators"
    assert predict(pack, appearance, RuntimeOptions(threads=3)).bytes == appearance.memory_bytes


def test_without_a_figure_a_small_graph_counts_its_weights_and_a_large_one_is_looked_into(small: Pack) -> None:
    spec = replace(small.manifest.model("generator"), memory_bytes=None)
    size = small.model_path(spec).stat().st_size
    assert predict(small, spec, RuntimeOptions(threads=1)) == memory.Predicted(size, "weights")
    found = predict(small, spec, RuntimeOptions(threads=1, memory=size))
    assert found.source == "graph"
    assert found.bytes >= 4 * 3 * 32 * 32  # at least a value of the graph


@pytest.mark.parametrize(("rungs", "on_host"), [("cpu", True), ("openvino,cpu", True), ("cuda,cpu", False)])
def test_the_largest_model_decides(rungs: str, on_host: bool) -> None:
    pack = open_pack()
    needed, _ = memory_needed(pack, "quality", RuntimeOptions(threads=1, providers=parse_rungs(rungs)))
    largest = max(entry.stat().st_size for entry in pack.folder.glob("*.onnx"))
    appearance = pack.manifest.model("appearance").memory_bytes
    assert appearance is not None
    assert needed == memory.PROCESS + memory.RUNTIME + (appearance if on_host else largest)


def test_what_does_not_fit_is_refused_with_figures(tmp_path: Path) -> None:
    pack = build_small_pack(tmp_path / "large", memory=3 << 30)
    options = RuntimeOptions(threads=1, memory=2 << 30)
    with pytest.raises(
        TooLittleMemoryError, match=r"preview of pack embedded.*3\.15 GiB.*generator.*2\.00 GiB"
    ) as caught:
        require_memory(pack, "preview", options)
    assert caught.value.allowed == 2 << 30
    assert caught.value.needed > 3 << 30
    require_memory(pack, "preview", replace(options, memory=4 << 30))


def test_a_preset_that_fits_is_named() -> None:
    pack = open_pack()
    options = RuntimeOptions(threads=16)
    preview, quality = (memory_needed(pack, name, options)[0] for name in ("preview", "quality"))
    assert preview < quality
    with pytest.raises(TooLittleMemoryError, match="choose preset preview, or give it more memory"):
        require_memory(pack, "quality", replace(options, memory=quality - 1))
    require_memory(pack, "quality", replace(options, memory=quality))


def test_an_unknown_preset_is_told_first(small: Pack) -> None:
    with pytest.raises(PackError, match="no preset 'quality'"):
        require_memory(small, "quality", RuntimeOptions(threads=1, memory=1))


def test_rendering_refuses_before_any_work(tmp_path: Path) -> None:
    """Neither the portrait nor the recording is looked at."""
    with pytest.raises(TooLittleMemoryError):
        render(
            tmp_path / "no-portrait.png", tmp_path / "no-voice.wav", tmp_path / "film.webm",
            options=RuntimeOptions(threads=1, memory=200 * MIB),
        )  # fmt: skip
    assert list(tmp_path.iterdir()) == []


def test_a_container_s_limit_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "memory.max").write_text(f"{300 * MIB}\n")
    (tmp_path / "cgroup").write_text("0::/\n")
    monkeypatch.setattr(memory, "memory_allowed", lambda: memory_allowed(tmp_path, tmp_path / "cgroup"))
    with pytest.raises(TooLittleMemoryError, match=r"this process may use 0\.29 GiB"):
        require_memory(open_pack(), "preview", RuntimeOptions(threads=1))
    assert memory_for_models(RuntimeOptions()) == 240 * MIB


def two_generators(tmp_path: Path, size: int) -> Models:
    """A pack with two generators of a size, and 1 GiB for the open models."""
    pack = build_small_pack(tmp_path / "small", memory=size)
    manifest = json.loads((pack.folder / MANIFEST).read_text("utf-8"))
    manifest["models"]["other"] = manifest["models"]["generator"]
    (pack.folder / MANIFEST).write_text(json.dumps(manifest), "utf-8")
    options = RuntimeOptions(threads=1, memory=int((1 << 30) / memory.SHARE) + 1)
    return Models(Pack.open(pack.folder), options, residents=Residents())


def run(models: Models, name: str) -> None:
    spec = models.pack.manifest.model(name)
    models.get(name).run({role: tensor.zeros() for role, tensor in spec.inputs.items()})


@pytest.mark.parametrize(
    ("size", "left"), [(600 * MIB, {"other"}), (500 * MIB, {"generator", "other"})], ids=["large", "small"]
)
def test_two_large_generators_never_sit_side_by_side(tmp_path: Path, size: int, left: set[str]) -> None:
    models = two_generators(tmp_path, size)
    run(models, "generator")
    run(models, "other")
    assert {name for name, _ in models.opened} == left
    run(models, "generator")
    assert ("generator", None) in models.opened


def test_the_float32_variant_opens_only_when_it_runs(tmp_path: Path) -> None:
    models = Models(build_small_pack(tmp_path / "half", half=True), RuntimeOptions(threads=1), residents=Residents())
    second = models.second_try("generator")
    assert models.opened == set()
    second.side("feature")
    assert models.opened == {("generator", "float32")}
