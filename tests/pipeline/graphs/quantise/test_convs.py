"""Convolutions in 8 bits: fused and run as integers by ONNX Runtime, chosen by the picture."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import numpy as np
import onnx
import onnx_ir as ir
import onnxruntime
import pytest
from onnx import helper

from pipeline.errors import GraphError
from pipeline.graphs.lower.passes import Outcome, Pass
from pipeline.graphs.lower.presets import lower
from pipeline.graphs.model import constant, describe
from pipeline.graphs.quantise import Int8, Quantised, quantise_convs
from pipeline.graphs.quantise.choosing import choose
from pipeline.graphs.quantise.quality import decibel, squared_error
from pipeline.graphs.standins import SMALL, generator, inputs
from tests.pipeline.graphs.graphs import model, random, run

BITS = Int8(weight_bits=7)


def network() -> ir.Model:
    """Three convolutions with a Relu, a LeakyRelu and a residual between them, and a picture of range 1."""
    weights = {
        "w0": random((16, 8, 3, 3), 1) / 8,
        "b0": random((16,), 2),
        "w1": random((16, 16, 3, 3), 3) / 12,
        "b1": random((16,), 4),
        "w2": random((3, 16, 1, 1), 5) / 4,
    }
    nodes = [
        helper.make_node("Conv", ["x", "w0", "b0"], ["a"], name="first", pads=[1] * 4),
        helper.make_node("Relu", ["a"], ["b"]),
        helper.make_node("Conv", ["b", "w1", "b1"], ["c"], name="second", pads=[1] * 4),
        helper.make_node("LeakyRelu", ["c"], ["d"], alpha=0.2),
        helper.make_node("Add", ["b", "d"], ["e"]),
        helper.make_node("Conv", ["e", "w2"], ["f"], name="image"),
        helper.make_node("Sigmoid", ["f"], ["y"]),
    ]
    return model(nodes, {"x": (1, 8, 24, 24)}, ["y"], weights)


def feeds(count: int, first: int = 0) -> list[dict[str, np.ndarray]]:
    return [{"x": random((1, 8, 24, 24), 100 + first + seed)} for seed in range(count)]


def fused(graph: ir.Model) -> list[str]:
    """Operators of the graph that ONNX Runtime makes of it."""
    with tempfile.TemporaryDirectory() as folder:
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3
        options.optimized_model_filepath = str(Path(folder) / "fused.onnx")
        proto = ir.to_proto(graph)
        onnxruntime.InferenceSession(proto.SerializeToString(), options, ["CPUExecutionProvider"])
        return [node.op_type for node in onnx.load(options.optimized_model_filepath).graph.node]


def psnr(graph: ir.Model, reference: ir.Model, rows: list[dict[str, np.ndarray]]) -> float:
    name = graph.graph.outputs[0].name
    return min(decibel(squared_error(run(graph, row)[name], run(reference, row)[name])) for row in rows)


def test_all_convolutions_run_in_integers() -> None:
    source = network()
    made = quantise_convs(source, feeds(3), settings=BITS, psnr=20).model
    operators = fused(made)
    assert operators.count("QLinearConv") == 3
    assert "Conv" not in operators
    assert "Relu" not in operators  # the end of the range stands for it
    assert 30 < psnr(made, source, feeds(2, first=10)) < 70


def test_the_source_is_not_changed_and_the_result_is_the_same_again() -> None:
    source = network()
    before = ir.to_proto(source).SerializeToString(deterministic=True)
    found = [ir.to_proto(quantise_convs(source, feeds(2), settings=BITS).model) for _ in range(2)]
    assert ir.to_proto(source).SerializeToString(deterministic=True) == before
    assert found[0].SerializeToString(deterministic=True) == found[1].SerializeToString(deterministic=True)


@pytest.mark.parametrize("nodes", ["conv", "conv and relu"])
def test_a_graph_output_keeps_its_name(nodes: str) -> None:
    made = [helper.make_node("Conv", ["x", "w"], ["y" if nodes == "conv" else "a"])]
    if nodes != "conv":
        made.append(helper.make_node("Relu", ["a"], ["y"]))
    source = model(made, {"x": (1, 8, 12, 12)}, ["y"], {"w": random((4, 8, 1, 1)) / 8})
    given = [{"x": random((1, 8, 12, 12), seed)} for seed in range(2)]
    quantised = quantise_convs(source, given, settings=BITS, psnr=20).model
    assert [value.name for value in quantised.graph.outputs] == ["y"]
    assert "QLinearConv" in fused(quantised)
    assert psnr(quantised, source, given) > 30


def test_convolutions_in_groups_and_in_batches() -> None:
    weights = {"w": random((6, 2, 3, 3)) / 4, "b": random((6,), 1)}
    nodes = [helper.make_node("Conv", ["x", "w", "b"], ["y"], group=2, strides=[2, 1], pads=[1, 0, 1, 2])]
    source = model(nodes, {"x": (2, 4, 11, 13)}, ["y"], weights)
    given = [{"x": random((2, 4, 11, 13), seed)} for seed in range(2)]
    assert psnr(quantise_convs(source, given, settings=BITS, psnr=20).model, source, given) > 25


def test_a_stricter_bound_leaves_more_in_float32() -> None:
    source = network()
    made = {bound: quantise_convs(source, feeds(3), settings=BITS, psnr=bound) for bound in (30, 52, 90)}
    counts = [sum(part.choice == "int8" for part in found.report.parts) for found in made.values()]
    assert counts[0] == 3 > counts[1] > counts[2] == 0
    for bound, found in made.items():
        assert psnr(found.model, source, feeds(3)) >= bound
    assert made[90].report.variants[-1].scores["PSNR"] == np.inf


def test_parts_are_dropped_by_error_for_gain_and_the_sum_is_checked() -> None:
    alone = [[1.0, 2.0], [4.0, 1.0], [2.0, 2.0], [0.5, 0.5]]
    tried: list[list[int]] = []

    def measure(indices: Sequence[int]) -> list[float]:
        tried.append(list(indices))
        return [1.3 * sum(alone[index][judged] for index in indices) for judged in (0, 1)]

    assert choose(alone, [1.0, 1.0, 2.0, 0.4], 5.0, measure) == [2, 3]
    assert tried == [[0, 2, 3], [2, 3]]  # the sum was within the bound, what was measured was not
    assert choose(alone, [1.0, 1.0, 0.0, 1.0], 100.0, measure) == [0, 1, 3]
    assert choose(alone, [1.0] * 4, 0.1, measure) == []


@cache
def standin() -> tuple[ir.Model, Quantised]:
    """The small generator, lowered, with 8-bit convolutions."""
    source = lower(ir.from_proto(generator(SMALL)), "rank4").model
    given = [inputs(SMALL, kind, seed) for kind, seed in (("near", 0), ("far", 2))]
    return source, quantise_convs(source, given, judged=[inputs(SMALL, "typical", 9)], settings=BITS, threads=1)


def test_the_generator_keeps_its_picture() -> None:
    source, found = standin()
    variants = {variant.name: variant for variant in found.report.variants}
    assert variants["chosen"].scores["PSNR"] >= 35
    assert variants["chosen"].scores["SSIM"] >= 0.99
    assert variants["all in int8"].scores["PSNR"] < variants["chosen"].scores["PSNR"]
    assert variants["float32"].scores == {"PSNR": np.inf, "SSIM": 1.0}
    unseen = inputs(SMALL, "typical", 31)
    shaped = {v.name: unseen[str(v.name)].reshape(v.shape.numpy()) for v in source.graph.inputs}
    assert psnr(found.model, source, [shaped]) >= 33


def test_the_warping_stage_is_left_as_it_is() -> None:
    source, found = standin()
    kept = {node.name for node in found.model.graph if node.op_type == "Conv" and constant(node.inputs[1]) is not None}
    assert {name.partition("'")[2].rstrip("'") for name in found.report.left} <= kept
    assert len(found.report.left) == sum(node.op_type == "Conv" for node in source.graph) - 76
    quantised = [part for part in found.report.parts if part.choice == "int8"]
    assert len(quantised) > 30
    assert sum(part.weights for part in quantised) > 0.9 * sum(part.weights for part in found.report.parts)


def test_the_report_names_every_convolution_and_becomes_json_and_tables() -> None:
    source, found = standin()
    named = [name for part in found.report.parts for name in part.nodes] + list(found.report.left)
    assert sorted(named) == sorted(describe(node) for node in source.graph if node.op_type == "Conv")
    plain = json.loads(json.dumps(found.report.to_json()))
    assert plain["variants"][0]["scores"]["PSNR"] == "inf"
    assert len(plain["parts"]) == len(found.report.parts)
    text = found.report.to_markdown()
    assert all(part.nodes[0] in text for part in found.report.parts)
    assert "| chosen |" in text


def test_what_stays_float_gets_the_last_passes_and_speeds_weigh_in() -> None:
    seen: list[int] = []

    def apply(made: ir.Model) -> Outcome:
        seen.append(sum(constant(node.inputs[1]) is not None for node in made.graph if node.op_type == "Conv"))
        return Outcome()

    finish = [Pass("count", "counts convolutions in float32", apply)]
    slow = quantise_convs(network(), feeds(1), settings=BITS, finish=finish, least_speedup=1e9)
    assert {part.choice for part in slow.report.parts} == {"float32"}
    assert {part.why for part in slow.report.parts} == {"slower"}
    assert all(part.speedup is not None and part.speedup > 0 for part in slow.report.parts)
    assert [variant.speedup is None for variant in slow.report.variants] == [True, False, False]
    assert sorted(seen) == [0, 1, 1, 1, 3, 3]  # all in int8; each group alone; the source; what was chosen


def test_what_cannot_be_quantised_is_refused() -> None:
    nodes = [helper.make_node("Conv", ["x", "w"], ["a"]), helper.make_node("Softmax", ["a"], ["y"])]
    source = model(nodes, {"x": (1, 4, 6, 6)}, ["y"], {"w": random((4, 4, 1, 1))})
    with pytest.raises(GraphError, match="no convolution that may be quantised"):
        quantise_convs(source, [{"x": random((1, 4, 6, 6))}])
    with pytest.raises(GraphError, match="no inputs to calibrate on"):
        quantise_convs(network(), [])
    with pytest.raises(GraphError, match="no ranges 'entropy'"):
        quantise_convs(network(), feeds(1), settings=Int8(ranges="entropy"))
    with pytest.raises(GraphError, match="the input x takes"):
        quantise_convs(network(), [{"x": random((1, 8, 5, 5))}])
