"""Builds of a pack for a machine: what they hold, when they open, and that nothing half-made is ever seen."""

from __future__ import annotations

import hashlib
import json
import shutil
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest

from pipeline.cli.examine_packs import pack_looks
from pipeline.errors import PackError, ProofError, SettingsError
from pipeline.graphs.convert import has_halves
from pipeline.graphs.feeds import Feeds, signature
from pipeline.graphs.lower import presets
from pipeline.graphs.lower.editing import Editor
from pipeline.graphs.lower.passes import Outcome, Pass
from pipeline.graphs.model import load, prepare
from pipeline.graphs.quantise.quality import decibel, squared_error
from pipeline.graphs.runner import Runner
from pipeline.graphs.schemes import Inputs
from pipeline.packs import built
from pipeline.packs.building import BuildOptions, build
from pipeline.packs.built import BuildName, build_names, builds
from pipeline.packs.catalogue import list_packs
from pipeline.packs.pack import Pack
from pipeline.packs.registry import Registry
from pipeline.packs.removal import remove
from pipeline.packs.store import open_pack
from tests.pipeline.packs.building.tiny_pack import published, untouched

CPU = BuildOptions("cpu", threads=1, pairs=0)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Packs `tiny` and `export`, and a build of `tiny` for the CPU."""
    made = tmp_path_factory.mktemp("packs")
    published(made / "tiny")
    untouched(made / "export")
    build(Pack.open(made / "tiny"), CPU)
    return made


@pytest.fixture
def tiny(folder: Path, tmp_path: Path) -> Pack:
    """A copy of `tiny` without builds."""
    shutil.copytree(folder / "tiny", tmp_path / "tiny", ignore=shutil.ignore_patterns("built"))
    return Pack.open(tmp_path / "tiny")


def pictures(pack: Pack, model: str, variant: str | None = None, kind: str = "typical") -> np.ndarray:
    runner = Runner(pack.model_path(pack.manifest.model(model), variant))
    return runner.run(runner.feeds([feeds(pack, model, kind)]))["out"]


def feeds(pack: Pack, model: str, kind: str) -> Feeds:
    ports = signature(prepare(load(pack.model_path(pack.manifest.model(model)))))
    return Inputs().make(ports)[1][kind][0]


def graph(pack: Pack, model: str, variant: str | None = None) -> onnx.ModelProto:
    return onnx.load(pack.model_path(pack.manifest.model(model), variant))


def test_the_cpu_build_is_the_same_pack_in_float32(folder: Path) -> None:
    source, made = Pack.open(folder / "tiny"), open_pack(f"{folder / 'tiny'}+cpu")
    made.verify()
    assert made.name == "tiny+cpu"
    assert made.identity != source.identity
    assert made.manifest.presets == source.manifest.presets
    for name in ("small", "large"):
        spec = made.manifest.model(name)
        assert spec.inputs == source.manifest.model(name).inputs  # rank 5 where it was
        assert set(spec.variants) == {"float32"}
        for variant in (None, "float32"):
            assert not has_halves(prepare(load(made.model_path(spec, variant))))
            for kind in ("near", "out"):
                apart = np.abs(pictures(made, name, variant, kind) - pictures(source, name, None, kind))
                assert apart.max() < 2e-3  # what rounding to half precision makes, at most
        assert presets.above_rank4_inside(prepare(load(made.model_path(spec)))) == []
        assert spec.memory_bytes != source.manifest.model(name).memory_bytes
        assert (spec.memory_bytes or 0) > 0
    assert made.manifest.model("other") == source.manifest.model("other")


def test_what_did_not_change_is_shared_and_half_precision_is_gone(folder: Path) -> None:
    source, made = Pack.open(folder / "tiny"), open_pack(f"{folder / 'tiny'}+cpu")
    for name in ("table.bin", "net/other.onnx"):
        assert made.path(name).samefile(source.path(name))
        assert made.manifest.files[name] == source.manifest.files[name]
    assert "net/large.onnx" not in made.manifest.files
    present = {path.relative_to(made.folder).as_posix() for path in made.folder.rglob("*") if path.is_file()}
    assert present == {*made.manifest.files, "manifest.json"}
    entry = made.manifest.files["net/large.cpu.onnx"]
    assert source.manifest.files["net/large.onnx"].sha256 in entry.provenance
    assert built.tools_version()[:12] in entry.provenance


def test_the_proof_is_of_the_files_that_are_there(folder: Path) -> None:
    made = open_pack(f"{folder / 'tiny'}+cpu")
    for name, what in (("large.cpu", "cpu"), ("large.cpu.float32", "upcast")):
        evidence = made.json(f"net/{name}.evidence.json")
        assert (evidence["preset"], evidence["holds"]) == (what, True)
        assert evidence["after"]["sha256"] == made.manifest.files[f"net/{name}.onnx"].sha256
        assert "Every bound holds" in made.path(f"net/{name}.evidence.md").read_text()
    told = made.section("build").data
    assert told["models"]["other"] == {"stays": "no pass has anything to rewrite in it"}
    assert [line.split(":")[0] for line in told["models"]["large"]["steps"]] == ["upcast", "cpu"]


def test_it_is_built_once(folder: Path) -> None:
    said: list[str] = []
    before = sorted((folder / "tiny" / "built").iterdir())
    build(Pack.open(folder / "tiny"), CPU, say=said.append)
    assert [line.endswith("is there already") for line in said] == [True]
    assert sorted((folder / "tiny" / "built").iterdir()) == before


def test_a_pack_that_is_not_built_says_how(folder: Path) -> None:
    export = folder / "export"
    with pytest.raises(PackError, match=rf"build it: talkreel pack build {export} --preset int8$"):
        open_pack(f"{export}+int8")
    with pytest.raises(PackError, match="no pack 'absent'"):
        open_pack("absent+cpu")
    with pytest.raises(PackError, match=r"--preset cpu --generator export$"):
        open_pack(f"{folder / 'tiny'}+export+cpu")


def test_another_version_of_the_tools_makes_it_stale(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(built, "tools_version", lambda: "of another version")
    with pytest.raises(PackError, match="another version of talkreel; build it again: talkreel pack build"):
        open_pack(f"{folder / 'tiny'}+cpu")


def test_another_source_makes_it_stale_and_a_new_build_replaces_it(tiny: Pack, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipeline.packs.building.builder.generators", lambda pack, other: {})  # nothing to prove
    first = build(tiny, CPU)
    data = json.loads((tiny.folder / "manifest.json").read_text())
    data["note"] = "changed"
    (tiny.folder / "manifest.json").write_text(json.dumps(data))
    with pytest.raises(PackError, match="tiny has changed since; build it again"):
        open_pack(f"{tiny.folder}+cpu")
    second = build(Pack.open(tiny.folder), CPU)
    assert second.folder != first.folder
    assert [each.folder for each in builds(Pack.open(tiny.folder))] == [second.folder]
    assert open_pack(f"{tiny.folder}+cpu").folder == second.folder


def test_builds_are_listed_and_belong_to_their_pack(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = folder / "root"
    shutil.copytree(folder / "tiny", root / "tiny" / "1")
    monkeypatch.setenv("TALKREEL_PACKS", str(root))
    found = [one for one in list_packs(Registry({})) if one.manifest.name.startswith("tiny")]
    assert [(one.manifest.name, one.state) for one in found] == [("tiny", "pulled"), ("tiny+cpu", "built")]
    assert open_pack("tiny+cpu").folder == found[1].folder
    looks = dict(pack_looks(Registry({})))
    assert {name: look().split(", ")[2] for name, look in looks.items() if name.startswith("tiny")} == {
        "tiny": "usable",
        "tiny+cpu": "usable",
    }
    with monkeypatch.context() as patched:
        patched.setattr(built, "tools_version", lambda: "of another version")
        assert dict(pack_looks(Registry({})))["tiny+cpu"]() == (
            "out of date: it was made by another version of talkreel; "
            "build it again: talkreel pack build tiny --preset cpu"
        )
    assert remove("tiny+cpu").folders == (found[1].folder,)
    for ask in (open_pack, remove):
        with pytest.raises(PackError, match="not built"):
            ask("tiny+cpu")
    open_pack("tiny").verify()


KILLED = """
import os, signal, sys
from pathlib import Path
from pipeline.packs.building import BuildOptions, build, writing
from pipeline.packs.pack import Pack
writing.Writer.finish = lambda self: os.kill(os.getpid(), signal.SIGKILL)
build(Pack.open(Path(sys.argv[1])), BuildOptions("cpu", threads=1, pairs=0))
"""


def test_a_killed_build_leaves_nothing_that_opens(folder: Path, tmp_path: Path) -> None:
    export = tmp_path / "export"
    data = json.loads((untouched(export) / "manifest.json").read_text())
    data["presets"] = {"quality": {"size": 32, "generator": "exported"}}
    (export / "manifest.json").write_text(json.dumps(data))
    ended = subprocess.run([sys.executable, "-c", KILLED, str(export)], check=False)
    assert ended.returncode == -signal.SIGKILL
    assert list((export / "built").rglob("*.onnx"))  # it had come far
    with pytest.raises(PackError, match="is not built for cpu"):
        open_pack(f"{export}+cpu")
    # Two at once clear it away and build once; what a command says goes to standard error.
    command = [sys.executable, "-m", "pipeline", "pack", "build", str(export), "--preset", "cpu", "--runs", "0"]
    both = [
        subprocess.Popen([*command, "--threads", "1"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    said = [process.communicate() for process in both]
    assert [process.returncode for process in both] == [0, 0], said
    assert sorted("is there already" in error for _, error in said) == [False, True]
    assert all(f"--pack {export}+cpu" in output for output, _ in said)
    made = open_pack(f"{export}+cpu")
    made.verify()
    assert [path.name for path in (export / "built").iterdir() if not path.name.endswith(".lock")] == [made.folder.name]


def test_a_broken_bound_is_refused_and_its_evidence_stays(tiny: Pack, monkeypatch: pytest.MonkeyPatch) -> None:
    def spoil(model: object) -> Outcome:
        (last,) = model.graph.outputs  # type: ignore[attr-defined]
        node = last.producer()
        editor = Editor(model, before=node)  # type: ignore[arg-type]
        node.replace_input_with(0, editor.op("Mul", node.inputs[0], editor.const(np.float32(1.01))))
        return Outcome()

    wrong = replace(presets.PRESETS["cpu"], finish=(Pass("wrong", "", spoil),))  # type: ignore[arg-type]
    monkeypatch.setitem(presets.PRESETS, "cpu", wrong)
    with pytest.raises(ProofError, match=r"times the noise floor, more than 2 .*\(see the evidence in "):
        build(tiny, CPU)
    (refused,) = (tiny.folder / "built").glob(".*.refused")
    assert json.loads((refused / "large.cpu.evidence.json").read_text())["holds"] is False
    assert builds(tiny) == []


def test_generators_of_another_pack_stand_in(folder: Path) -> None:
    """In half precision for CUDA: 32 pixels, and 16 made from the same graph, as the published pair."""
    source, export = Pack.open(folder / "tiny"), Pack.open(folder / "export")
    made = build(source, BuildOptions("cuda", threads=1, pairs=0), generator=export)
    assert made.name == "tiny+export+cuda"
    assert open_pack(f"{source.folder}+export+cuda").folder == made.folder
    for name in ("small", "large"):
        spec = made.manifest.model(name)
        assert spec.outputs == source.manifest.model(name).outputs
        assert has_halves(prepare(load(made.model_path(spec))))
        assert not has_halves(prepare(load(made.model_path(spec, "float32"))))
        for variant, tolerance in ((None, 2e-3), ("float32", 2e-3)):
            assert np.abs(pictures(made, name, variant) - pictures(source, name)).max() < tolerance
        evidence = made.json(f"net/exported.{name}.cuda.evidence.json")
        assert (evidence["preset"], evidence["other_bounds"]["mean"]) == ("float16", 0.01)
    assert np.abs(pictures(made, "large", "float32") - pictures(export, "exported")).max() < 1e-5
    assert "left out" in made.section("build").data["models"]["small"]["steps"][0]
    beside = made.manifest.model("beside")  # tiny has none
    assert beside.inputs == export.manifest.model("beside").inputs
    assert made.path(beside.file).samefile(export.path("net/beside.onnx"))
    made.verify()
    assert (
        export.manifest.files["net/exported.onnx"].sha256
        in made.manifest.files["net/exported.small.cuda.onnx"].provenance
    )


def test_a_generator_that_does_not_fit_is_refused_before_work(folder: Path, tiny: Pack) -> None:
    data = json.loads((tiny.folder / "manifest.json").read_text())
    data["models"]["small"]["outputs"]["image"]["shape"] = [1, 3, 24, 24]
    (tiny.folder / "manifest.json").write_text(json.dumps(data))
    with pytest.raises(PackError, match=r"no model that fits in the place of small .*\(24, 24\) pixels"):
        build(Pack.open(tiny.folder), CPU, generator=Pack.open(folder / "export"))
    with pytest.raises(PackError, match="has no presets"):
        build(Pack.open(folder / "export"), CPU)


def test_int8_keeps_the_picture_as_good_as_asked(folder: Path) -> None:
    export = Pack.open(folder / "export")
    made = build(Pack.open(folder / "tiny"), BuildOptions("int8", psnr=40, threads=1, pairs=0), generator=export)
    operators = {node.op_type for node in graph(made, "large").graph.node}
    assert "QuantizeLinear" in operators
    error = squared_error(pictures(made, "large"), pictures(export, "exported"))
    assert 38 < decibel(error) < 80
    evidence = made.json("net/exported.large.int8.evidence.json")
    assert evidence["other_bounds"]["rms"] == 0.01  # 40 dB of a picture in 0..1
    assert "Convolutions in 8 bits" in made.path("net/exported.large.int8.choices.md").read_text()


def test_names_of_builds() -> None:
    assert list(build_names("a+cpu")) == [BuildName("a", "cpu")]
    assert list(build_names("a+b+cpu")) == [BuildName("a+b", "cpu"), BuildName("a", "cpu", "b")]
    assert list(build_names("a+b")) == list(build_names("+cpu")) == list(build_names("cpu")) == []
    assert BuildName("a", "cpu", "b").text == "a+b+cpu"


@pytest.mark.parametrize("options", [{"preset": "tpu"}, {"psnr": 5.0}, {"psnr": float("nan")}, {"threads": 0}])
def test_options_out_of_range(options: dict[str, object]) -> None:
    with pytest.raises(SettingsError):
        BuildOptions(**({"preset": "cpu"} | options))  # type: ignore[arg-type]


def test_options_that_decide_the_result_are_in_the_key(tmp_path: Path) -> None:
    (tmp_path / "face.png").write_bytes(b"a face")
    digest = hashlib.sha256(b"a face").hexdigest()
    assert BuildOptions("cuda", portraits=(tmp_path / "face.png",)).to_json()["portraits"] == [digest]
    assert BuildOptions("int8", psnr=30).to_json() != BuildOptions("int8").to_json()
    assert BuildOptions("cpu", threads=4).to_json() == BuildOptions("cpu", threads=1).to_json()
    with pytest.raises(PackError, match="give another portrait"):
        BuildOptions("int8", portraits=(tmp_path / "none.png",)).to_json()
