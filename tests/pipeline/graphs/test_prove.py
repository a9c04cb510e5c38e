"""Proofs: what is written, that it is the same every time, and that a broken bound fails."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import helper

from pipeline.errors import GraphError, OutputError, ProofError
from pipeline.graphs.evidence import Evidence
from pipeline.graphs.lower import presets
from pipeline.graphs.lower.editing import Editor
from pipeline.graphs.lower.passes import Outcome, Pass
from pipeline.graphs.lower.presets import Preset
from pipeline.graphs.prove import prove
from pipeline.graphs.runner import RunOptions
from pipeline.graphs.schemes import Inputs
from pipeline.graphs.standins import SMALL, SeededWeights, warping_part
from tests.pipeline.graphs.graphs import proto, random

ONE = RunOptions(threads=1)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], pads=[1] * 6),
        helper.make_node("GridSample", ["c", "grid"], ["y"], name="sample"),
    ]
    inputs = {"x": [1, 6, 4, 9, 9], "grid": [1, 4, 9, 9, 3]}
    onnx.save(proto(nodes, inputs, ["y"], {"w": random([8, 6, 3, 3, 3]) / 12}), tmp_path / "warp.onnx")
    return tmp_path / "warp.onnx"


def proven(source: Path, preset: str = "rank4", **options: Any) -> Evidence:
    return prove(source, preset, options=ONE, **({"runs": 0} | options))


def test_a_proof_writes_graph_and_evidence(source: Path) -> None:
    evidence = proven(source, runs=2)
    made, folder = source.with_name("warp.rank4.onnx"), source.parent
    assert sorted(path.name for path in folder.iterdir()) == [
        "warp.onnx", "warp.rank4.evidence.json", "warp.rank4.evidence.md", "warp.rank4.onnx"
    ]  # fmt: skip
    data = json.loads((folder / "warp.rank4.evidence.json").read_text())
    assert data == json.loads(json.dumps(evidence.to_json()))
    assert (data["holds"], data["broken"], data["preset"], data["bound"]) == (True, [], "rank4", 2)
    for name, path in (("before", source), ("after", made)):
        assert data[name] == {
            "file": path.name,
            "bytes": path.stat().st_size,
            "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
        }
    assert data["audit"]["before"]["above_rank_4"]
    assert not data["audit"]["after"]["above_rank_4"]
    passes = {entry["name"]: entry for entry in data["passes"]}
    assert passes["grid-sample"]["rewritten"] == ["GridSample 'sample'"]
    assert set(data["errors"]["outputs"]) == {"small", "unit", "large"}
    for row in data["errors"]["outputs"].values():
        assert row["y"]["ratio"] <= 2
        assert row["y"]["error"].keys() == row["y"]["floor"].keys() == {"max", "mean", "p99", "p999", "psnr", "rms"}
    speed = data["speed"]
    assert speed["seconds_before"] > 0
    assert speed["ratio"] > 0
    assert (speed["pairs"], speed["threads"], speed["provider"]) == (2, 1, "CPUExecutionProvider")
    assert "onnxruntime" in speed["versions"]
    assert speed["machine"]["cpu"]


def test_the_page_says_the_same(source: Path) -> None:
    evidence = proven(source, runs=2)
    page = source.with_name("warp.rank4.evidence.md").read_text()
    for text in (evidence.after.sha256, evidence.before.sha256, "Every bound holds", "| unit | y |", "times as fast"):
        assert text in page
    for name in evidence.passes:
        assert f"| {name} |" in page


def test_all_but_the_times_is_the_same_again(source: Path, tmp_path: Path) -> None:
    first = proven(source, output=tmp_path / "out.onnx", layers=True)
    files = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    again = proven(source, output=tmp_path / "out.onnx", layers=True, runs=1)
    assert {**again.to_json(), "speed": None} == first.to_json()
    assert (tmp_path / "out.onnx").read_bytes() == files["out.onnx"]


def test_several_frames(source: Path) -> None:
    evidence = proven(source, batch=2, batched=["grid"], runs=1)
    assert evidence.comparison.frames == 2
    assert evidence.to_json()["batch"] == 2
    assert not evidence.broken


def test_the_small_generators_warping_near_and_far(tmp_path: Path) -> None:
    source = tmp_path / "warping.onnx"
    onnx.save(warping_part(SMALL, SeededWeights(3)), source)
    evidence = proven(source, "gridsample", inputs=Inputs(kinds=["near", "out"]))
    assert evidence.comparison.scheme == "keypoints"
    assert list(evidence.comparison.outputs) == ["near", "out"]


def wrong_preset(factor: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """A preset that scales a convolution's weights."""

    def apply(model: ir.Model) -> Outcome:
        node = next(node for node in model.graph if node.op_type == "Conv")
        weight = node.inputs[1]
        assert weight is not None
        assert weight.const_value is not None
        changed = Editor(model, before=node).const(weight.const_value.numpy() * np.float32(factor))
        node.replace_input_with(1, changed)
        return Outcome(["Conv"], {})

    preset = Preset("wrong", "", (Pass("wrong", "", apply),), lambda model: [])
    monkeypatch.setitem(presets.PRESETS, "wrong", preset)


def test_a_wrong_graph_is_not_proven(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wrong_preset(1.0001, monkeypatch)
    with pytest.raises(ProofError, match=r"warp.wrong.onnx is not proven: y \(small inputs\) is off by .*more than 2"):
        proven(source, "wrong")
    data = json.loads(source.with_name("warp.wrong.evidence.json").read_text())
    assert data["holds"] is False
    assert [line.split(" is off")[0] for line in data["broken"]][:2] == ["y (small inputs)", "y (unit inputs)"]
    assert "**Broken:**" in source.with_name("warp.wrong.evidence.md").read_text()


def test_the_bound_is_a_choice(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wrong_preset(1.0001, monkeypatch)
    assert not proven(source, "wrong", bound=1e6).broken


def test_not_a_number_is_not_proven(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wrong_preset(float("nan"), monkeypatch)
    with pytest.raises(ProofError, match="is off by inf times"):
        proven(source, "wrong", bound=1e6)


def test_a_speed_that_is_not_reached_is_told(source: Path) -> None:
    with pytest.raises(ProofError, match=r"times as fast, less than 1e\+06"):
        proven(source, faster=1e6, runs=1)
    assert not proven(source, faster=1e-6, runs=1).broken


def test_what_the_preset_should_not_leave_is_told(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answers = iter([[], ["GridSample 'sample'"]])  # of the graph in memory, then of the file
    preset = Preset("leaves", "", (), lambda model: next(answers))
    monkeypatch.setitem(presets.PRESETS, "leaves", preset)
    with pytest.raises(ProofError, match="leaves would leave nothing, but there are GridSample 'sample'"):
        proven(source, "leaves")


def test_a_proof_needs_a_place_and_times(source: Path, tmp_path: Path) -> None:
    with pytest.raises(GraphError, match="would replace its source"):
        proven(source, output=source)
    with pytest.raises(GraphError, match="needs timed runs"):
        proven(source, faster=1.0)
    with pytest.raises(OutputError, match="cannot be written"):
        proven(source, output=tmp_path / "no" / "out.onnx")
