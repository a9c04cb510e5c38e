"""The stand-ins have the published structure; full sizes are checked without making the weights."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import cache

import onnx
import pytest
from onnx import ModelProto, NodeProto, TensorProto, shape_inference

from pipeline.graphs.standins import (
    FULL,
    PREVIEW,
    SMALL,
    AbsentWeights,
    Spec,
    appearance,
    generator,
    spade_part,
    warping_part,
)

Shapes = dict[str, tuple[int, ...]]
BUILDERS = {"generator": generator, "warping": warping_part, "spade": spade_part, "appearance": appearance}


@cache
def built(name: str, spec: Spec) -> tuple[ModelProto, Shapes]:
    """A model without weights and the inferred shape of each of its values."""
    model = BUILDERS[name](spec, AbsentWeights())
    graph = shape_inference.infer_shapes(model, check_type=True, strict_mode=True, data_prop=True).graph
    values = [*graph.input, *graph.value_info, *graph.output]
    shapes = {value.name: tuple(size.dim_value for size in value.type.tensor_type.shape.dim) for value in values}
    return model, shapes | {value.name: tuple(value.dims) for value in graph.initializer}


def operators(model: ModelProto) -> Counter[str]:
    return Counter(node.op_type for node in model.graph.node)


def parameters(model: ModelProto) -> int:
    """Elements of the trained parameters: those without values here."""
    absent = [value for value in model.graph.initializer if value.data_location == TensorProto.EXTERNAL]
    return sum(elements(value.dims) for value in absent)


def elements(shape: tuple[int, ...]) -> int:
    count = 1
    for size in shape:
        count *= size
    return count


def conv_gflop(model: ModelProto, shapes: Shapes) -> float:
    """Two operations a weight and output position."""
    convs = [node for node in model.graph.node if node.op_type == "Conv"]
    return sum(2e-9 * elements(shapes[n.input[1]]) * elements(shapes[n.output[0]][2:]) for n in convs)


def of_rank(model: ModelProto, shapes: Shapes, operator: str, rank: int) -> list[NodeProto]:
    return [n for n in model.graph.node if n.op_type == operator and len(shapes[n.output[0]]) == rank]


SPECS = pytest.mark.parametrize("spec", [pytest.param(FULL, id="full"), pytest.param(SMALL, id="small")])


@SPECS
def test_generator_has_the_published_operators(spec: Spec) -> None:
    model, shapes = built("generator", spec)
    assert len(model.graph.node) == 277
    assert operators(model) == {
        "Conv": 90,
        "Add": 45,
        "Relu": 30,
        "Mul": 22,
        "LeakyRelu": 18,
        "InstanceNormalization": 16,
        "Reshape": 8,
        "Resize": 10,
        "Concat": 8,
        "AveragePool": 5,
        "Unsqueeze": 3,
        "ReduceSum": 3,
        "Sub": 4,
        "GridSample": 2,
        "Pow": 2,
        "Div": 2,
        "Exp": 2,
        "Transpose": 2,
        "Sigmoid": 2,
        "Tile": 1,
        "Softmax": 1,
        "DepthToSpace": 1,
    }
    assert len(of_rank(model, shapes, "Conv", 5)) == 13
    assert len(of_rank(model, shapes, "GridSample", 5)) == 2
    assert max(len(shapes[node.output[0]]) for node in model.graph.node) == 7
    assert [(opset.domain, opset.version) for opset in model.opset_import] == [("", 20)]


@SPECS
def test_appearance_has_the_published_operators(spec: Spec) -> None:
    model, shapes = built("appearance", spec)
    assert operators(model) == {
        "Conv": 16,
        "Relu": 15,
        "Add": 6,
        "BatchNormalization": 6,
        "AveragePool": 2,
        "Reshape": 1,
    }
    assert len(of_rank(model, shapes, "Conv", 5)) == 12
    assert [value.name for value in model.graph.output] == ["feature_3d"]


def test_full_generator_has_the_published_interface_and_size() -> None:
    model, shapes = built("generator", FULL)
    given = {value.name: shapes[value.name] for value in model.graph.input}
    assert given == {"feature_3d": (1, 32, 16, 64, 64), "kp_driving": (1, 21, 3), "kp_source": (1, 21, 3)}
    assert {value.name: shapes[value.name] for value in model.graph.output} == {"out": (1, 3, 512, 512)}
    assert parameters(model) == 100_902_925
    stored = sum(4 * elements(value.dims) for value in model.graph.initializer)
    assert stored == pytest.approx(421_238_874, rel=1e-3)  # bytes of the published file


@pytest.mark.parametrize(
    ("name", "millions", "gflop"), [("warping", 45.5, 342), ("spade", 55.4, 892), ("appearance", 0.84, 64)]
)
def test_full_parts_have_the_published_cost(name: str, millions: float, gflop: float) -> None:
    model, shapes = built(name, FULL)
    assert parameters(model) / 1e6 == pytest.approx(millions, abs=0.05)
    assert conv_gflop(model, shapes) == pytest.approx(gflop, rel=0.01)


@pytest.mark.parametrize("spec", [FULL, PREVIEW, SMALL], ids=["full", "preview", "small"])
def test_halves_are_the_whole_cut_at_the_warped_features(spec: Spec) -> None:
    whole = built("generator", spec)[0].graph.node
    first, first_shapes = built("warping", spec)
    second, second_shapes = built("spade", spec)
    cut = len(first.graph.node)
    assert cut == 83
    assert list(first.graph.node) == list(whole[:cut])
    assert [n.op_type for n in second.graph.node] == [n.op_type for n in whole[cut:]]
    assert first_shapes["warped"] == second_shapes["warped"]
    assert first_shapes["warped"] == (1, spec.warped_channels, spec.size, spec.size)


@pytest.mark.parametrize(("full", "size"), [(FULL, 256), (SMALL, 128)], ids=["full", "small"])
def test_preview_leaves_out_the_last_upsampling(full: Spec, size: int) -> None:
    model, shapes = built("generator", replace(full, preview=True))
    assert len(model.graph.node) == 276
    assert operators(built("generator", full)[0]) - operators(model) == {"Resize": 1}
    assert shapes["out"] == (1, 3, size, size)
    assert parameters(model) == parameters(built("generator", full)[0])


def test_largest_values_and_convolutions() -> None:
    """The shapes that decide memory and time."""
    model, shapes = built("generator", FULL)
    made = Counter(shapes[node.output[0]] for node in model.graph.node)
    assert made[(1, 22, 1, 4, 16, 64, 64)] == 1
    assert made[(1, 22, 3, 16, 64, 64)] == 2
    assert max(elements(shape) for shape in made) == 256 * 256 * 256
    weights = Counter(shapes[node.input[1]] for node in model.graph.node if node.op_type == "Conv")
    assert weights[(22, 142, 7, 7, 7)] == weights[(142, 142, 3, 3, 3)] == weights[(1, 2272, 7, 7)] == 1
    assert weights[(512, 512, 3, 3)] == 12
    assert weights[(128, 256, 3, 3)] == 18
    assert weights[(512, 128, 3, 3)] == 28


@pytest.mark.parametrize("name", BUILDERS)
def test_small_models_pass_the_full_check(name: str) -> None:
    onnx.checker.check_model(BUILDERS[name](SMALL), full_check=True)


def test_a_size_that_cannot_be_halved_five_times_is_refused() -> None:
    with pytest.raises(ValueError, match="size is 48: give a multiple of 32"):
        replace(SMALL, size=48)
