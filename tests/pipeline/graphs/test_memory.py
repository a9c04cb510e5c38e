"""Predicted memory against the measured peak of ONNX Runtime, each in a process of its own."""

from __future__ import annotations

import json
import resource
from pathlib import Path

import numpy as np
import onnx
import onnx_ir as ir
import onnxruntime
import pytest

from pipeline.errors import GraphError
from pipeline.graphs import standins
from pipeline.graphs.allocation import allocate
from pipeline.graphs.arena import alive
from pipeline.graphs.measure import measure_peak
from pipeline.graphs.memory import MemoryOptions, peak_memory
from pipeline.graphs.model import prepare
from pipeline.graphs.order import run_order
from pipeline.packs.embedded.authoring.manifest import MEMORY_STEP, session_memory
from pipeline.packs.store import open_pack

PAGE = resource.getpagesize()
EMBEDDED = {
    "embedded": "pipeline/packs/embedded/generator_512.onnx",
    "embedded preview": "pipeline/packs/embedded/generator_256.onnx",
}


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    path = tmp_path_factory.mktemp("small") / "generator.onnx"
    onnx.save_model(standins.generator(standins.SMALL), path)
    return path


def feeds(path):
    graph, chance = onnx.load(path, load_external_data=False).graph, np.random.default_rng(0)
    shapes = {v.name: [d.dim_value for d in v.type.tensor_type.shape.dim] for v in graph.input}
    return {name: chance.uniform(-0.5, 0.5, shape).astype(np.float32) for name, shape in shapes.items()}


@pytest.mark.parametrize("options", [MemoryOptions(), MemoryOptions(pattern=False)], ids=["default", "no-pattern"])
@pytest.mark.parametrize("name", ["embedded", "embedded preview", "small"])
def test_prediction_is_within_a_fifth_of_the_measured_peak(name, options, small):
    path = EMBEDDED.get(name, small)
    predicted, measured = peak_memory(path, options), measure_peak(path, feeds(path), options)
    assert predicted.total == pytest.approx(measured.peak, rel=0.2)
    assert 0 < measured.session <= measured.loading + 64 * PAGE  # read one after the other
    assert measured.loading < measured.peak


@pytest.mark.parametrize("padding", ["zeros", "border"])
@pytest.mark.parametrize("mode", ["linear", "cubic"])
def test_what_a_sampling_kernel_keeps_of_its_points_counts(mode, padding, tmp_path):
    tensor = lambda name, *shape: onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape)  # noqa: E731
    node = onnx.helper.make_node("GridSample", ["x", "at"], ["y"], mode=mode, padding_mode=padding)
    x, at, y = tensor("x", 1, 1, 64, 64), tensor("at", 1, 1024, 1024, 2), tensor("y", 1, 1, 1024, 1024)
    model = onnx.helper.make_model(
        onnx.helper.make_graph([node], "sampling", [x, at], [y]), opset_imports=[onnx.helper.make_opsetid("", 20)]
    )
    model.ir_version = 9
    onnx.save_model(model, path := tmp_path / "sampling.onnx")
    options = MemoryOptions(pattern=False)
    predicted, measured = peak_memory(path, options), measure_peak(path, feeds(path), options)
    assert predicted.total - predicted.runtime == pytest.approx(measured.peak - measured.session, rel=0.2, abs=1 << 20)


def test_the_packs_manifest_states_the_prediction():
    path = Path("pipeline/packs/embedded/generator_256.onnx")
    stated = open_pack().manifest.models["generator_256"].memory_bytes
    assert stated == session_memory(path)
    assert 0 <= stated - peak_memory(path).session < MEMORY_STEP


def test_allocation_is_that_of_onnxruntime_node_by_node(small, tmp_path):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 3
    options.enable_mem_pattern, options.enable_profiling = False, True
    options.profile_file_prefix = str(tmp_path / "profile")
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(str(small), options, providers=["CPUExecutionProvider"])
    session.run(None, feeds(small))
    with open(session.end_profiling(), encoding="utf-8") as file:
        events = [event for event in json.load(file) if event["name"].endswith("_kernel_time")]
    graph = ir.from_proto(standins.generator(standins.SMALL))
    for node in (order := run_order(graph.graph)):
        graph.graph.remove(node)
    graph.graph.extend(order)
    prepare(graph)
    made = allocate(graph)
    ours = alive([*made.inner, *made.outputs])
    theirs = [int(event["args"]["mem_bytes_requested_in_use"]) for event in events]
    assert [event["name"].removesuffix("_kernel_time") for event in events] == [node.name for node in graph.graph]
    near = [abs(a - b) < 8192 for a, b in zip(ours, theirs, strict=True)]
    assert sum(near) >= len(near) - 2  # kernels with a scratch buffer hold it while they are counted
    assert max(ours) == pytest.approx(max(theirs), rel=0.01)


def test_a_file_that_does_not_load_is_named(tmp_path):
    with pytest.raises(GraphError, match=r"missing\.onnx"):
        measure_peak(tmp_path / "missing.onnx", {})
    with pytest.raises(GraphError, match=r"missing\.onnx"):
        peak_memory(tmp_path / "missing.onnx")
