"""The audit of a graph, and the table of what targets lack."""

from __future__ import annotations

import json

import onnx
import onnx_ir as ir
import onnxruntime.capi.onnxruntime_pybind11_state as registry
import pytest
from onnx import TensorProto, helper

from pipeline.errors import GraphError
from pipeline.graphs import standins
from pipeline.graphs.audit import audit
from pipeline.graphs.model import load, prepare
from pipeline.graphs.targets import table, target, target_names
from tests.pipeline.graphs.graphs import model, proto, random


@pytest.fixture(scope="module")
def generator():
    return audit(ir.from_proto(standins.generator(standins.FULL, standins.AbsentWeights())))


def test_published_generator(generator):
    assert len(generator.nodes) == 277
    assert generator.operators["Conv"]["5"] == 13
    assert generator.operators["GridSample"] == {"5": 2}
    assert generator.parameters / 1e6 == pytest.approx(45.5 + 55.4, rel=0.01)
    assert generator.flops / 1e9 == pytest.approx(342 + 892, rel=0.01)
    assert generator.uncounted == []
    assert generator.above_rank_4["feature_3d"] == (1, 32, 16, 64, 64)
    assert all(len(shape) > 4 for shape in generator.above_rank_4.values())


def test_what_targets_lack_in_it(generator):
    assert set(generator.lacking) == {"cpu", "cuda", "webgpu", "openvino"}
    assert generator.lacking["cpu"] == {}
    assert generator.lacking["cuda"] == {}
    operators = {node.name: node.operator for node in generator.nodes}
    for name in ("webgpu", "openvino"):
        assert {operators[node] for node in generator.lacking[name]} == {"GridSample"}
        assert len(generator.lacking[name]) == 2


def test_json_and_text_say_the_same(generator):
    report = json.loads(json.dumps(generator.to_json()))
    assert report["nodes"] == len(report["by_node"]) == 277
    assert report["operators"]["Conv"]["5"] == 13
    text = generator.text()
    assert "GFLOP" in text
    assert "ONNX Runtime Web, WebGPU provider" in text
    assert f"{generator.parameters / 1e6:.2f} M" in text


def test_loop_invariant_part():
    graph = prepare(load("pipeline/packs/embedded/denoiser.onnx"))
    found = audit(graph, ["cpu"], ["motion", "step"])
    assert found.invariant is not None
    assert 0 < found.invariant.flops < found.flops
    assert found.to_json()["invariant"]["loop_inputs"] == ["motion", "step"]
    assert "outside the loop" in found.text()


def grid_sample(rank, opset):
    shapes = {"x": [1, 2, *[4] * (rank - 2)], "g": [1, *[3] * (rank - 2), rank - 2]}
    node = helper.make_node("GridSample", ["x", "g"], ["y"], mode="linear" if opset >= 20 else "bilinear")
    graph = helper.make_graph(
        [node],
        "g",
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in shapes.items()],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
    )
    return ir.from_proto(helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])).graph[0]


@pytest.mark.parametrize(
    ("name", "version", "opset", "rank", "runs"),
    [
        ("cuda", "1.25", 20, 5, True),
        ("cuda", "1.24", 20, 5, False),
        ("cuda", "1.25", 16, 5, False),
        ("cuda", "1.24", 20, 4, True),
        ("webgpu", "1.30", 16, 4, True),
        ("webgpu", "1.30", 20, 4, False),
        ("webgpu", "1.30", 16, 5, False),
        ("openvino", "2026.1", 20, 4, False),
        ("openvino", "2026.3", 20, 4, True),
        ("openvino", "2026.3", 20, 5, False),
        ("cpu", "1.32", 20, 5, True),
    ],
)
def test_grid_sample_by_version_operator_set_and_rank(name, version, opset, rank, runs):
    assert (target(name).lacks(grid_sample(rank, opset), opset, version) is None) is runs


def test_grouped_convolution_of_three_axes_is_not_on_webgpu():
    def conv(group):
        node = helper.make_node("Conv", ["x", "w"], ["y"], group=group)
        return model([node], {"x": [1, 4, 4, 4, 4]}, ["y"], {"w": random((4, 4 // group, 1, 1, 1))}).graph[0]

    assert target("webgpu").lacks(conv(1), 20) is None
    assert "ungrouped" in str(target("webgpu").lacks(conv(2), 20))


@pytest.mark.parametrize(
    ("channels", "out", "kernel", "attributes", "right"),
    [
        (18, 24, (3, 3), {}, False),
        (9, 8, (3,), {}, False),
        (6, 8, (1, 1), {"strides": [2, 2]}, False),
        (6, 8, (1, 1), {}, True),
        (3, 8, (3, 3), {}, True),
        (12, 8, (3, 3), {}, True),
        (10, 8, (3, 3), {}, True),
        (18, 6, (3, 3), {}, True),
        (18, 8, (3, 3), {"group": 2}, True),
        (18, 8, (3, 3, 3), {}, True),
    ],
)
def test_channels_that_webgpu_reads_by_threes(channels, out, kernel, attributes, right):
    node = helper.make_node("Conv", ["x", "w"], ["y"], **attributes)
    weight = random((out, channels // attributes.get("group", 1), *kernel))
    (conv,) = model([node], {"x": [1, channels, *[8] * len(kernel)]}, ["y"], {"w": weight}).graph
    why = target("webgpu").lacks(conv, 19)
    assert (why is None) is right
    assert right or "by threes" in why


def test_types_count():
    node = helper.make_node("Conv", ["x", "w"], ["y"])
    half = ir.from_proto(proto([node], {"x": [1, 1, 4, 4], "w": [1, 1, 3, 3]}, ["y"], dtype=TensorProto.FLOAT16)).graph[
        0
    ]
    assert target("cpu").lacks(half, 20) == "no float16 kernel"
    assert target("cuda").lacks(half, 20) is None


def test_subgraphs_are_counted():
    def branch(operator):
        output = helper.make_tensor_value_info(f"{operator}_out", TensorProto.FLOAT, None)
        return helper.make_graph([helper.make_node(operator, ["x"], [output.name])], operator, [], [output])

    graph = helper.make_graph(
        [helper.make_node("If", ["c"], ["y"], then_branch=branch("Neg"), else_branch=branch("Exp"))],
        "g",
        [helper.make_tensor_value_info("c", TensorProto.BOOL, []), helper.make_tensor_value_info("x", 1, [2, 3])],
        [helper.make_tensor_value_info("y", 1, None)],
    )
    found = audit(ir.from_proto(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)))
    assert found.operators == {"Exp": {"2": 1}, "If": {"2": 1}, "Neg": {"2": 1}}
    assert found.flops == 12
    assert found.to_json()["subgraph_nodes"] == 2


def test_cpu_table_is_that_of_the_installed_runtime():
    there = {k.op_name for k in registry.get_all_opkernel_def() if k.domain == ""}
    assert set(target("cpu").operators) <= there
    assert len(target("cpu").operators) > 150


def test_every_target_says_where_it_is_from():
    groups = table()["types"]
    for name in target_names():
        one = target(name)
        assert one.source
        assert one.versions
        assert all(limit["source"] for limit in one.limits)
        assert all(onnx.defs.has(operator) for operator in one.operators)
        for kernels in one.operators.values():
            for types in filter(None, kernels.values()):
                names = [t for part in types.split() for t in groups.get(part, part).split()]
                assert all(t.upper() in {"FLOAT32", "FLOAT64"} or hasattr(ir.DataType, t.upper()) for t in names)


def test_wrong_names_are_refused(generator):
    with pytest.raises(GraphError, match="give one of cpu"):
        target("abacus")
    with pytest.raises(GraphError, match="one target"):
        audit(ir.from_proto(standins.appearance(standins.SMALL, standins.AbsentWeights())), version="1.20")
