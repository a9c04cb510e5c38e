"""Where nodes ran: what counts is the work in them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime as ort
import pytest

from pipeline.packs.embedded.authoring.writer import Graph
from pipeline.runtime.placement import node_work, placement, read_placement

CUDA, CPU = "CUDAExecutionProvider", "CPUExecutionProvider"
CONV = ("Conv", [("float", [1, 8, 64, 64]), ("float", [16, 8, 3, 3])], [("float", [1, 16, 64, 64])])


def event(provider: str, operator: str, inputs: Any, outputs: Any, name: str = "node") -> dict[str, Any]:
    tensors = {"input_type_shape": inputs, "output_type_shape": outputs}
    shapes = {key: [{kind: shape} for kind, shape in value] for key, value in tensors.items()}
    return {"cat": "Node", "name": name, "args": {"provider": provider, "op_name": operator, **shapes}}


@pytest.mark.parametrize(
    ("operator", "inputs", "outputs", "work"),
    [
        (*CONV, 2 * 16 * 64 * 64 * 8 * 9),
        ("ConvTranspose", [("float", [1, 8, 4, 4]), ("float", [8, 2, 3, 3])], [("float", [1, 2, 8, 8])], 2 * 128 * 18),
        ("MatMul", [("float", [5, 7, 3]), ("float", [3, 4])], [("float", [5, 7, 4])], 2 * 140 * 3),
        ("Gemm", [("float16", [7, 3]), ("float16", [3, 4])], [("float16", [7, 4])], 2 * 28 * 3),
        ("GridSample", [("float", [1, 2, 4, 4]), ("float", [1, 5, 5, 2])], [("float", [1, 2, 5, 5])], 50 * 16),
        ("Add", [("float", [4, 4]), ("float", [4, 4])], [("float", [4, 4])], 48),
        ("Gather", [("int64", [4]), ("int64", [])], [("int64", [])], 0),
        ("Cast", [("int64", [4])], [("float", [4])], 4),
    ],
)
def test_work_of_a_node(operator: str, inputs: Any, outputs: Any, work: int) -> None:
    assert node_work(operator, inputs, outputs) == work


def test_arithmetic_on_shapes_is_told_and_does_not_count() -> None:
    shapes = [event(CPU, "Concat", [("int64", [1]), ("int64", [1])], [("int64", [2])]) for _ in range(30)]
    found = placement([event(CUDA, *CONV), *shapes], CUDA)
    assert found.whole
    assert found.share == 0
    assert str(found) == "30 of 31 nodes elsewhere (30 Concat; 0.0% of the work)"


def test_a_heavy_node_elsewhere_counts() -> None:
    sample = ("GridSample", [("float", [1, 8, 64, 64]), ("float", [1, 64, 64, 2])], [("float", [1, 8, 64, 64])])
    found = placement([event(CUDA, *CONV), event(CPU, *sample)], CUDA)
    assert not found.whole
    assert not found.mostly_elsewhere
    assert "1 of 2 nodes elsewhere (GridSample" in str(found)
    other = placement([event(CPU, *CONV), event(CUDA, *sample)], CUDA)
    assert other.mostly_elsewhere


def test_copies_are_counted_and_are_no_fall_back() -> None:
    copy = event(CUDA, "MemcpyToHost", [("float", [1, 8])], [("float", [1, 8])])
    found = placement([event(CUDA, *CONV), copy], CUDA)
    assert (found.copies, found.elsewhere, found.whole) == (1, {}, True)


@pytest.mark.parametrize(("side", "whole"), [(8, True), (1024, False)])
def test_where_a_provider_compiles_nodes_the_others_are_measured_alone(side: int, whole: bool) -> None:
    provider = "OpenVINOExecutionProvider"
    part = event(provider, "OpenVINO-EP-subgraph_1", [("float", [1])], [("float", [1])])
    conv = ("Conv", [("float", [1, 2, side, side]), ("float", [2, 2, 3, 3])], [("float", [1, 2, side, side])])
    found = placement([part, event(CPU, *conv)], provider)
    assert (found.share, found.whole) == (None, whole)


def test_a_real_profile(tmp_path: Path) -> None:
    graph = Graph("double")
    graph.output("y", graph.input("x", [1, 300]) * 2, [1, 300])
    graph.save(tmp_path / "double.onnx")
    options = ort.SessionOptions()
    options.enable_profiling, options.profile_file_prefix = True, str(tmp_path / "profile")
    session = ort.InferenceSession(str(tmp_path / "double.onnx"), options, providers=[CPU])
    session.run(None, {"x": np.zeros((1, 300), np.float32)})
    profile = Path(session.end_profiling())
    assert str(read_placement(profile, CPU)) == "all 1 nodes"
    elsewhere = read_placement(profile, CUDA)
    assert elsewhere.elsewhere == {"Mul": 1}
    assert elsewhere.mostly_elsewhere
