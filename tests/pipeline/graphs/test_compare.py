"""Two graph files compared: outputs, layers, several frames, and what cannot be compared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper

from pipeline.errors import GraphError, ModelError
from pipeline.graphs.compare import compare
from pipeline.graphs.layers import batches
from pipeline.graphs.lower.presets import lower
from pipeline.graphs.model import load, save
from pipeline.graphs.runner import Runner, RunOptions
from pipeline.graphs.schemes import Inputs
from pipeline.graphs.timing import alternate
from tests.pipeline.graphs.graphs import proto, random

ONE = RunOptions(threads=1)
UNIT = Inputs(kinds=["unit"])

WEIGHT = random([8, 6, 3, 3, 3]) / 12
NODES = [
    helper.make_node("Conv", ["x", "w"], ["c"], pads=[1] * 6),
    helper.make_node("Relu", ["c"], ["r"]),
    helper.make_node("Add", ["r", "s"], ["y"]),
]


def write(
    path: Path,
    nodes: Sequence[onnx.NodeProto] = NODES,
    inputs: Mapping[str, Sequence[int | str]] = {"x": [1, 6, 4, 9, 9], "s": [1, 8, 1, 1, 1]},
    outputs: Sequence[str] = ("y",),
    weight: np.ndarray = WEIGHT,
) -> Path:
    constants = {"w": weight} if any("w" in node.input for node in nodes) else {}
    onnx.save(proto(nodes, inputs, outputs, constants), path)
    return path


def lowered(source: Path, preset: str = "rank4", **options: object) -> Path:
    path = source.with_suffix(f".{preset}.onnx")
    save(lower(load(source), preset, **options).model, path)  # type: ignore[arg-type]
    return path


def test_a_graph_is_itself(tmp_path: Path) -> None:
    path = write(tmp_path / "a.onnx")
    found = compare(path, path, options=ONE)
    assert list(found.outputs) == ["small", "unit", "large"]
    assert found.ratio == 0
    assert found.layers == {}
    assert found.outputs["unit"]["y"].floor.max > 0


def test_a_lowered_graph_is_within_the_floor_and_its_shapes_are_those_before(tmp_path: Path) -> None:
    path = write(tmp_path / "a.onnx")
    found = compare(path, lowered(path), options=ONE, inputs=UNIT)
    assert 0 < found.ratio <= 2


def test_a_little_wrong_is_far_over_the_floor(tmp_path: Path) -> None:
    path = write(tmp_path / "a.onnx")
    wrong = WEIGHT.copy()
    wrong[3, 2, 1, 1, 1] += 1e-3
    found = compare(path, write(tmp_path / "b.onnx", weight=wrong), options=ONE, inputs=UNIT)
    assert found.ratio > 100


def test_layers_show_where_it_goes_wrong(tmp_path: Path) -> None:
    path = write(tmp_path / "a.onnx")
    other = [*NODES[:1], helper.make_node("LeakyRelu", ["c"], ["r"], alpha=0.01), *NODES[2:]]
    found = compare(path, write(tmp_path / "b.onnx", other), options=ONE, inputs=UNIT, layers=True)
    (row,) = found.layers.values()
    assert list(row) == ["c", "r"]
    assert row["c"].ratio <= 2
    assert row["r"].ratio > 100


def test_values_are_fetched_a_few_at_a_time() -> None:
    assert list(batches([("a", 3), ("b", 3), ("c", 9), ("d", 1)], limit=6)) == [["a", "b"], ["c"], ["d"]]
    assert list(batches([])) == []


def test_several_frames_against_one_a_run(tmp_path: Path) -> None:
    path = write(tmp_path / "a.onnx")
    found = compare(path, lowered(path, batch=3, batched=["s"]), options=ONE, inputs=UNIT)
    assert found.frames == 3
    assert found.ratio <= 2


def test_named_dimensions(tmp_path: Path) -> None:
    path = write(tmp_path / "a.onnx", inputs={"x": ["n", 6, 4, 9, 9], "s": [1, 8, 1, 1, 1]})
    assert compare(path, lowered(path, dims={"n": 2}), dims={"n": 2}, options=ONE, inputs=UNIT).ratio <= 2
    with pytest.raises(GraphError, match=r"dimensions without a length: n"):
        compare(path, path, options=ONE)


@pytest.mark.parametrize(
    ("nodes", "inputs", "outputs", "text"),
    [
        ([helper.make_node("Relu", ["x"], ["z"])], {"x": [1, 6, 4, 9, 9]}, ["z"], "has the outputs y, "),
        ([helper.make_node("Relu", ["z"], ["y"])], {"z": [1, 8, 4, 9, 9]}, ["y"], "has an input z that was not given"),
        ([helper.make_node("Relu", ["x"], ["y"])], {"x": [1, 5, 4, 9, 9]}, ["y"], r"the input x of .* takes \[1, 5"),
        ([helper.make_node("Relu", ["x"], ["y"])], {"x": [1, 6, 4, 9, 9]}, ["y"], "the output y has shape"),
    ],
    ids=["outputs", "inputs", "shapes", "output's shape"],
)
def test_graphs_that_do_not_fit(
    nodes: list[onnx.NodeProto], inputs: dict[str, list[int]], outputs: list[str], text: str, tmp_path: Path
) -> None:
    path, other = write(tmp_path / "a.onnx"), write(tmp_path / "b.onnx", nodes, inputs, outputs)
    with pytest.raises(GraphError, match=text):
        compare(path, other, options=ONE, inputs=UNIT)


def test_a_batched_output_that_lost_its_frames_is_told(tmp_path: Path) -> None:
    path = write(tmp_path / "a.onnx")
    first = [*NODES[:2], helper.make_node("Slice", ["s", "zero", "one"], ["first"]), NODES[2]]
    first[3] = helper.make_node("Add", ["r", "first"], ["y"])
    constants = {"w": WEIGHT, "zero": np.array([0]), "one": np.array([1])}
    onnx.save(proto(first, {"x": [1, 6, 4, 9, 9], "s": [3, 8, 1, 1, 1]}, ["y"], constants), tmp_path / "b.onnx")
    with pytest.raises(GraphError, match="the output y has shape"):
        compare(path, tmp_path / "b.onnx", options=ONE, inputs=UNIT)


def test_a_file_that_does_not_load_and_a_provider_that_is_not_there(tmp_path: Path) -> None:
    path = write(tmp_path / "a.onnx")
    (tmp_path / "b.onnx").write_bytes(b"no graph")
    with pytest.raises(ModelError, match="does not load"):
        compare(path, tmp_path / "b.onnx", options=ONE)
    with pytest.raises(ModelError, match="NoneExecutionProvider is not here"):
        Runner(path, RunOptions(provider="NoneExecutionProvider"))


def test_providers_are_read_with_their_settings() -> None:
    options = RunOptions.parse("CUDA:use_tf32=0,prefer_nhwc=1", 4)
    assert options == RunOptions(4, provider="CUDAExecutionProvider", settings={"use_tf32": "0", "prefer_nhwc": "1"})
    for text in ("", "CUDA:tf32", ":a=1"):
        with pytest.raises(GraphError, match="cannot read the provider"):
            RunOptions.parse(text, 1)


def test_times_are_medians_of_turns(tmp_path: Path) -> None:
    path = write(tmp_path / "a.onnx")
    frames = [{"x": random([1, 6, 4, 9, 9]), "s": random([1, 8, 1, 1, 1], seed)} for seed in range(2)]
    #        warm-up     first turn      second          third
    ticks = iter([0, 9, 0, 9, 0, 4.0, 0, 2.0, 0, 6.0, 0, 2.0, 0, 50.0, 0, 100.0])
    runner = Runner(path, ONE)
    speed = alternate(runner, runner, frames, runs=3, clock=lambda: next(ticks))
    assert (speed.first, speed.second, speed.ratio, speed.runs) == (3.0, 1.0, 2.0, 3)
