"""`talkreel graph`: each tool on a small graph, as text and as JSON."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

from pipeline.cli.graph import GraphCommand
from pipeline.cli.main import main
from pipeline.graphs.lower.presets import lower
from pipeline.graphs.model import load, save
from tests.pipeline.graphs.graphs import proto, random


@pytest.fixture
def graph(tmp_path: Path) -> Path:
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], pads=[1] * 6, name="conv"),
        helper.make_node("Exp", ["s"], ["e"], name="exp"),
        helper.make_node("Mul", ["c", "e"], ["y"], name="mul"),
    ]
    inputs = {"x": ["n", 6, 4, 9, 9], "s": [1, 8, 1, 1, 1]}
    onnx.save(proto(nodes, inputs, ["y"], {"w": random([8, 6, 3, 3, 3]) / 12}), tmp_path / "g.onnx")
    return tmp_path / "g.onnx"


def talkreel(*arguments: object) -> int:
    return main(["graph", *map(str, arguments)])


def shown(capsys: pytest.CaptureFixture[str], *arguments: object) -> Any:
    """What a tool prints with `--json`."""
    assert talkreel(*arguments, "--json") == 0
    return json.loads(capsys.readouterr().out)


def test_audit(graph: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = shown(capsys, "audit", graph, "--dim", "n=1", "--target", "webgpu", "--loop", "x")
    assert data["operators"] == {"Conv": {"5": 1}, "Exp": {"5": 1}, "Mul": {"5": 1}}
    assert data["invariant"]["nodes"] == ["exp"]
    assert list(data["lacking"]) == ["webgpu"]
    assert talkreel("audit", graph) == 0
    assert "Conv" in capsys.readouterr().out


def test_lower(graph: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = shown(capsys, "lower", graph, "--preset", "rank4", "--dim", "n=1", "--batch", 2, "--batched", "s")
    made = graph.with_name("g.rank4.onnx")
    assert data["output"] == str(made)
    assert data["passes"][0]["name"] == "batch"
    shapes = {v.name: [d.dim_value for d in v.type.tensor_type.shape.dim] for v in onnx.load(made).graph.input}
    assert shapes == {"x": [6, 4, 9, 9], "s": [16, 1, 1, 1]}
    assert talkreel("lower", graph, "--preset", "rank4", "--dim", "n=1", "-o", graph.with_name("o.onnx")) == 0
    assert "o.onnx: " in capsys.readouterr().out


def test_convert(graph: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = shown(capsys, "convert", graph, "--dim", "n=1", "--kind", "unit")
    assert (data["output"], data["samples"]) == (str(graph.with_name("g.float16.onnx")), 1)
    assert "Conv 'conv'" in data["halves"]
    assert "Exp 'exp'" in data["exact"]
    assert talkreel("convert", graph, "--dim", "n=1", "--no-calibration") == 0
    assert "nodes in float16" in capsys.readouterr().out
    assert talkreel("convert", graph, "--dim", "n=1", "--dtype", "float8") == 2


def test_quantise_convolutions(graph: Path, capsys: pytest.CaptureFixture[str]) -> None:
    nodes = [
        helper.make_node("GridSample", ["x", "grid"], ["s"]),
        helper.make_node("Conv", ["s", "w"], ["c"], pads=[1] * 4, name="first"),
        helper.make_node("Relu", ["c"], ["r"]),
        helper.make_node("Conv", ["r", "v"], ["d"], pads=[1] * 4, name="second"),
        helper.make_node("Sigmoid", ["d"], ["y"]),
    ]
    weights = {"w": random([16, 16, 3, 3]) / 12, "v": random([3, 16, 3, 3], 1) / 12}
    onnx.save(proto(nodes, {"x": [1, 16, 16, 16], "grid": [1, 16, 16, 2]}, ["y"], weights), graph)
    report = graph.with_name("report.md")
    common = ("quantise", graph, "--kind", "unit", "--threads", 1, "--psnr", 30, "--report", report)
    data = shown(capsys, *common)
    assert data["output"] == str(graph.with_name("g.int8.onnx"))
    assert [part["choice"] for part in data["parts"]] == ["int8", "int8"]
    assert report.read_text().startswith("## Convolutions in 8 bits")
    assert any(node.op_type == "QuantizeLinear" for node in onnx.load(data["output"]).graph.node)


def test_quantise_linear_layers(graph: Path, capsys: pytest.CaptureFixture[str]) -> None:
    node = helper.make_node("MatMul", ["x", "w"], ["y"], name="product")
    onnx.save(proto([node], {"x": [8, 256]}, ["y"], {"w": random([256, 64]) / 16}), graph)
    data = shown(capsys, "quantise", graph, "--layers", "linears", "--kind", "unit", "--threads", 1, "--error", 0.5)
    assert data["output"] == str(graph.with_name("g.int4.onnx"))
    assert data["parts"][0]["choice"] == "4 bits"
    assert onnx.load(data["output"]).graph.node[0].op_type == "MatMulNBits"


def test_plan(graph: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = shown(capsys, "plan", graph, "--dim", "n=2", "--sessions", "--memory", "1")
    assert data["lower_bound"] <= data["search"] <= data["without_reuse"]
    assert data["session"]["total"] > 0
    assert data["sessions_that_fit"] == int(0.8 * 2**30 // data["session"]["total"])
    assert talkreel("plan", graph, "--dim", "n=2") == 0
    assert "most alive at once" in capsys.readouterr().out


def test_hoist(graph: Path, capsys: pytest.CaptureFixture[str]) -> None:
    nodes = [
        helper.make_node("MatMul", ["sound", "w"], ["m"], name="product"),
        helper.make_node("Add", ["m", "motion"], ["y"], name="sum"),
    ]
    onnx.save(proto(nodes, {"sound": [3, 40], "motion": [3, 4]}, ["y"], {"w": random([40, 4])}), graph)
    data = shown(capsys, "hoist", graph, "--loop", "motion")
    assert data["prologue"] == {
        "output": str(graph.with_name("g.prologue.onnx")), "nodes": 1, "inputs": ["sound"], "outputs": ["m"]
    }  # fmt: skip
    assert data["step"]["inputs"] == ["motion", "m"]
    assert onnx.load(graph.with_name("g.step.onnx")).graph.node[0].op_type == "Add"
    assert talkreel("hoist", graph, "--loop", "sound", "--step", graph.with_name("s.onnx")) == 2


def test_compare(graph: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = graph.with_name("o.onnx")
    save(lower(load(graph), "rank4", dims={"n": 1}).model, other)
    common = ("compare", graph, other, "--dim", "n=1", "--kind", "unit", "--threads", 1)
    data = shown(capsys, *common, "--layers", "--bound", 2, "--mean", 1e-3, "--psnr", 60)
    assert 0 < data["ratio"] <= 2
    assert list(data["outputs"]) == ["unit"]
    assert talkreel(*common, "--psnr", 400) == 1
    printed = capsys.readouterr()
    assert "| unit | y |" in printed.out
    assert "PSNR of" in printed.err


def test_compare_on_inputs_of_ones_own(graph: Path, capsys: pytest.CaptureFixture[str]) -> None:
    feeds = graph.with_name("mine.npz")
    np.savez(feeds, x=random([1, 6, 4, 9, 9]), s=random([1, 8, 1, 1, 1]))
    data = shown(capsys, "compare", graph, graph, "--dim", "n=1", "--feeds", feeds, "--threads", 1)
    assert (data["inputs"], list(data["outputs"]), data["ratio"]) == ("files", ["mine"], 0)


def test_prove(graph: Path, capsys: pytest.CaptureFixture[str]) -> None:
    common = ("prove", graph, "--preset", "rank4", "--dim", "n=1", "--kind", "unit", "--threads", 1, "--runs", 1)
    data = shown(capsys, *common)
    assert data["holds"]
    assert graph.with_name("g.rank4.evidence.md").is_file()
    assert talkreel(*common, "--faster", 1e6) == 1
    assert "is not proven" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("--preset", "fast"), "no preset 'fast'"),
        (("--preset", "rank4"), "n (of x)"),
        (("--preset", "rank4", "--dim", "n=1", "-o", "{graph}"), "would replace"),
        (("--preset", "rank4", "--dim", "n=1", "-o", "no/where.onnx"), "cannot be written"),
        (("--preset", "rank4", "--dim", "n=1", "--batch", "2", "--batched", "z"), "no input z to batch"),
    ],
)
def test_what_cannot_be_done_is_one_line_and_exit_2(
    arguments: tuple[str, ...], text: str, graph: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = graph.read_bytes()
    for tool in ("lower", "prove"):
        assert talkreel(tool, graph, *(argument.format(graph=graph) for argument in arguments)) == 2
        printed = capsys.readouterr().err
        assert text in printed
        assert len(printed.strip().splitlines()) == 1
    assert [path.name for path in graph.parent.iterdir()] == ["g.onnx"]
    assert graph.read_bytes() == before


@pytest.mark.parametrize("arguments", [(), ("nothing",), ("lower",), ("lower", "g", "--preset", "cpu", "--dim", "n")])
def test_bad_usage_is_exit_2(arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        talkreel(*arguments)
    assert left.value.code == 2
    assert "usage:" in capsys.readouterr().err


def test_help_lists_the_tools(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        talkreel("--help")
    printed = capsys.readouterr().out
    assert all(f"    {name} " in printed for name in GraphCommand.commands)


def child(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


def test_without_onnx_it_says_what_to_install() -> None:
    done = child(
        "import sys; sys.modules['onnx'] = None\n"
        "from pipeline.cli.main import main; sys.exit(main(['graph', 'audit', 'g.onnx']))"
    )
    assert done.returncode == 1
    assert 'pip install "talkreel[graphs]"' in done.stderr


def test_help_needs_no_onnx() -> None:
    done = child(
        "import sys\nfrom pipeline.cli.main import main\n"
        "try: main(['graph', 'lower', '--help'])\n"
        "except SystemExit: pass\n"
        "print(sorted({'onnx', 'onnx_ir', 'onnxruntime'} & sys.modules.keys()), file=sys.stderr)"
    )
    assert "--preset" in done.stdout
    assert done.stderr.strip() == "[]"
