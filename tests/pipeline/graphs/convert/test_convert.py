"""Mixed precision: what stays float32, and how right the result is."""

from __future__ import annotations

from collections import Counter

import ml_dtypes
import numpy as np
import onnx_ir as ir
import pytest
from onnx import TensorProto, helper

from pipeline.errors import GraphError
from pipeline.graphs.convert import convert
from pipeline.graphs.convert.casts import apply_precision
from pipeline.graphs.convert.overflow import magnitudes
from pipeline.graphs.convert.tracing import has_half_form, touches_floats
from pipeline.graphs.convert.work import heavy_nodes, multiply_adds
from pipeline.graphs.lower.cuda import PASSES
from pipeline.graphs.lower.passes import run_passes
from pipeline.graphs.model import prepare
from pipeline.graphs.standins import MOTIONS, SMALL, generator, inputs
from tests.pipeline.graphs.graphs import model, random, run

node = helper.make_node
HALF = ir.DataType.FLOAT16


def types(graph: ir.Model) -> dict[str, ir.DataType | None]:
    return {str(value.name): value.dtype for each in graph.graph for value in each.outputs}


def conv_then(*rest: object, more: dict[str, np.ndarray] | None = None) -> ir.Model:
    """A heavy convolution x -> h, then other nodes up to y."""
    constants = {"w": random([8, 8, 3, 3]) / 8, "b": random([8], 1)} | (more or {})
    return model([node("Conv", ["x", "w", "b"], ["h"], pads=[1] * 4), *rest], {"x": [1, 8, 8, 8]}, ["y"], constants)  # type: ignore[list-item]


def test_the_convolution_is_half_and_its_boundary_is_not() -> None:
    graph = conv_then(node("Relu", ["h"], ["r"]), node("Conv", ["r", "w", "b"], ["y"], pads=[1] * 4))
    converted, report = convert(graph)
    assert types(converted)["r"] == HALF
    assert [value.dtype for value in (*converted.graph.inputs, *converted.graph.outputs)] == [ir.DataType.FLOAT] * 2
    assert [value.name for value in converted.graph.outputs] == ["y"]
    assert report.casts == 2
    assert types(graph)["r"] == ir.DataType.FLOAT  # the given graph is as it was
    assert all(v.dtype == HALF for v in converted.graph.initializers.values())
    feeds = {"x": random([1, 8, 8, 8])}
    np.testing.assert_allclose(run(converted, feeds)["y"], run(graph, feeds)["y"], atol=0.01)


def test_softmax_is_exact_back_to_the_convolution() -> None:
    graph = conv_then(node("Mul", ["h", "k"], ["m"]), node("Softmax", ["m"], ["y"], axis=1), more={"k": np.float32(3)})
    converted, report = convert(graph)
    assert types(converted)["h"] == HALF
    assert types(converted)["m"] == ir.DataType.FLOAT
    assert report.exact["Mul 'm'"] == "feeds Softmax"


def test_coordinates_are_exact_through_any_operators() -> None:
    shift = {"axes": np.array([0, 2, 3, 1]), "grid": random([1, 8, 8, 2]), "v": random([2, 8, 1, 1]) / 8}
    graph = conv_then(
        node("Conv", ["h", "v"], ["flow"]),  # light: the trace goes through it
        node("Tanh", ["flow"], ["t"]),
        node("Transpose", ["t"], ["u"], perm=[0, 2, 3, 1]),
        node("Add", ["u", "grid"], ["g"]),
        node("GridSample", ["h", "g"], ["y"]),
        more={name: array for name, array in shift.items() if name != "axes"},
    )
    converted, report = convert(graph, light_share=0.1)
    assert {
        name: dtype for name, dtype in types(converted).items() if name in ("flow", "t", "u", "g")
    } == dict.fromkeys(("flow", "t", "u", "g"), ir.DataType.FLOAT)
    assert types(converted)["h"] == HALF
    assert report.exact["Tanh 't'"] == "feeds coordinates"


def test_indices_are_exact() -> None:
    graph = conv_then(
        node("ReduceMax", ["h"], ["top"], keepdims=0),
        node("Abs", ["top"], ["positive"]),
        node("Cast", ["positive"], ["index"], to=TensorProto.INT64),
        node("Gather", ["table", "index"], ["y"]),
        more={"table": random([64])},
    )
    _, report = convert(graph)
    assert report.exact["ReduceMax 'top'"] == report.exact["Abs 'positive'"] == "feeds indices or comparisons"


def test_what_reads_inputs_alone_stays_exact_until_it_feeds_a_convolution() -> None:
    nodes = [
        node("Sub", ["grid", "x"], ["d"]),
        node("Abs", ["d"], ["a"]),
        node("Sub", ["one", "a"], ["s"]),
        node("Relu", ["s"], ["tent"]),  # weights of samples that reach no operator made for them
        node("Conv", ["tent", "w"], ["y"], pads=[1] * 4),
    ]
    constants = {"grid": 64 * random([1, 8, 8, 8], 1), "one": np.float32(1), "w": random([8, 8, 3, 3])}
    converted, report = convert(model(nodes, {"x": [1, 8, 8, 8]}, ["y"], constants))
    assert types(converted)["tent"] == ir.DataType.FLOAT
    assert report.halves == ["Conv 'y'"]


def test_normalisations_are_exact_and_what_follows_is_not() -> None:
    tail = (
        node("InstanceNormalization", ["h", "s", "s"], ["n"]),
        node("Mul", ["n", "h"], ["m"]),
        node("Conv", ["m", "w"], ["y"], pads=[1] * 4),
    )
    graph = conv_then(*tail, more={"s": random([8])})
    exact, half = types(convert(graph)[0]), types(convert(graph, half_statistics=True)[0])
    assert (exact["n"], exact["m"]) == (ir.DataType.FLOAT, HALF)
    assert half["n"] == HALF


def test_values_out_of_range_are_found_by_running() -> None:
    graph = conv_then(
        node("Mul", ["h", "k"], ["m"]), node("Div", ["m", "k"], ["d"]), node("Conv", ["d", "w"], ["y"], pads=[1] * 4),
        more={"k": np.float32(30_000)},
    )  # fmt: skip
    feeds = {"x": random([1, 8, 8, 8], 5)}
    blind, seeing = convert(graph)[0], convert(graph, calibration=[feeds])
    wanted = run(graph, feeds)["y"]
    assert types(blind)["m"] == HALF  # would be infinite on a device that keeps it so
    np.testing.assert_allclose(run(seeing[0], feeds)["y"], wanted, atol=0.02)
    assert seeing[1].exact["Mul 'm'"].startswith("m reaches")
    assert seeing[1].calibrated == 1


def test_weights_that_half_cannot_hold_stay() -> None:
    graph = conv_then(node("Conv", ["h", "v"], ["y"], pads=[1] * 4), more={"v": 1e-7 * random([8, 8, 3, 3], 4)})
    _, report = convert(graph)
    assert report.exact["Conv 'y'"].startswith("v loses")
    _, wide = convert(graph, "bfloat16")
    assert "Conv 'y'" in wide.halves


def test_magnitudes_are_those_of_every_value() -> None:
    graph = conv_then(node("Neg", ["h"], ["y"]))
    feeds = [{"x": random([1, 8, 8, 8], seed)} for seed in (1, 2)]
    found = magnitudes(graph, feeds)
    wanted = max(float(np.abs(run(graph, each)["y"]).max()) for each in feeds)
    assert found["y"] == found["h"] == pytest.approx(wanted)
    assert found["x"] == max(float(np.abs(each["x"]).max()) for each in feeds)


def test_every_value_is_cast_once() -> None:
    branches = [node("Conv", ["x", "w"], [f"c{i}"], pads=[1] * 4) for i in range(3)]
    softened = [node("Softmax", ["c0"], [f"s{i}"], axis=i) for i in (1, 2)]
    total = [node("Sum", ["c1", "c2", "s1", "s2"], ["y"])]
    graph = model([*branches, *softened, *total], {"x": [1, 8, 8, 8]}, ["y"], {"w": random([8, 8, 3, 3])})
    converted, report = convert(graph)
    casts = [(each.inputs[0], each.attributes["to"].as_int()) for each in converted.graph if each.op_type == "Cast"]
    assert len(casts) == len(set(casts)) == report.casts


def test_bfloat16_takes_the_operator_set_that_has_it() -> None:
    graph = conv_then(node("Relu", ["h"], ["y"]))
    converted, _ = convert(graph, "bfloat16")
    assert converted.opset_imports[""] == 22
    assert types(converted)["h"] == ir.DataType.BFLOAT16
    weight = converted.graph.initializers[
        next(n.inputs[1].name for n in converted.graph if n.op_type == "Conv")
    ].const_value
    assert weight is not None
    assert weight.numpy().dtype == ml_dtypes.bfloat16


def test_odd_requests_are_refused() -> None:
    graph = conv_then(node("Relu", ["h"], ["y"]))
    with pytest.raises(GraphError, match="choose float16 or bfloat16"):
        convert(graph, "int8")
    with pytest.raises(GraphError, match="does not run on its sample inputs"):
        convert(graph, calibration=[{"x": np.zeros([1, 2, 3], np.float32)}])


def test_work_is_counted_and_the_smallest_is_light() -> None:
    graph = conv_then(node("Conv", ["h", "v"], ["y"]), more={"v": random([1, 8, 1, 1])})
    heavy, light = [each for each in graph.graph if each.op_type == "Conv"]
    assert [multiply_adds(each) for each in (heavy, light)] == [8 * 64 * 72, 64 * 8]
    assert heavy_nodes(graph.graph, 0.05) == {heavy}
    assert heavy_nodes(graph.graph, 0.0) == {heavy, light}


@pytest.mark.parametrize("lowered", [False, True], ids=["5d", "cuda"])
def test_the_generator_stays_right_where_the_naive_recipe_does_not(lowered: bool) -> None:
    graph = prepare(ir.from_proto(generator(SMALL)))
    feeds = {kind: inputs(SMALL, kind, 3) for kind in MOTIONS}
    wanted = {kind: run(graph, feed)["out"] for kind, feed in feeds.items()}
    if lowered:
        run_passes(graph, PASSES)
    naive = graph.clone()
    names = {"GridSample", "Resize"}
    apply_precision(
        naive,
        {n for n in naive.graph if n.op_type not in names and touches_floats(n) and has_half_form(n, HALF, {"": 20})},
        HALF,
    )
    mixed, report = convert(graph, calibration=[feeds["typical"]])
    errors = {
        name: [float(np.abs(run(each, feeds[kind])["out"] - wanted[kind]).mean()) for kind in ("typical", "out")]
        for name, each in (("naive", naive), ("mixed", mixed))
    }
    assert max(errors["mixed"]) <= 0.002
    assert errors["naive"][1] > 2 * errors["mixed"][1]
    assert Counter(name.split()[0] for name in report.halves)["Conv"] >= 40
