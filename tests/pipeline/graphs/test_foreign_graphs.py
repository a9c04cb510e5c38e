"""Graphs that this project did not make: refused with a reason, or lowered to the same function."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from pipeline.cli.main import main
from pipeline.graphs.lower.presets import WEB_OPERATOR_SET
from tests.pipeline.graphs.graphs import assert_same, random, run

VOLUME, GRID = (1, 3, 4, 5, 6), (1, 2, 3, 4, 3)


def sampling(
    *,
    volume: Sequence[int | str] = VOLUME,
    grid: Sequence[int | str] = GRID,
    opset: int = 20,
    dtype: int = TensorProto.FLOAT,
    **attributes: object,
) -> onnx.ModelProto:
    """One GridSample of a volume."""
    node = helper.make_node("GridSample", ["x", "grid"], ["y"], name="sample", **attributes)
    return graph([node], {"x": volume, "grid": grid}, opset=opset, dtype=dtype)


def graph(
    nodes: Sequence[onnx.NodeProto],
    inputs: Mapping[str, Sequence[int | str]],
    constants: Mapping[str, np.ndarray] | None = None,
    *,
    opset: int = 20,
    dtype: int = TensorProto.FLOAT,
    **rest: object,
) -> onnx.ModelProto:
    made = helper.make_graph(
        nodes,
        "foreign",
        [helper.make_tensor_value_info(name, dtype, shape) for name, shape in inputs.items()],
        [helper.make_tensor_value_info("y", dtype, None)],
        [numpy_helper.from_array(array, name) for name, array in (constants or {}).items()],
    )
    imports = [helper.make_opsetid("", opset), helper.make_opsetid("own", 1)]
    return helper.make_model(made, opset_imports=imports, ir_version=9, **rest)


def fixed(proto: onnx.ModelProto, lengths: Mapping[str, int]) -> onnx.ModelProto:
    """A copy with these lengths for its named dimensions."""
    made = onnx.ModelProto()
    made.CopyFrom(proto)
    for value in made.graph.input:
        for dim in value.type.tensor_type.shape.dim:
            if dim.dim_param:
                dim.dim_value = lengths[dim.dim_param]
    return made


def feeds_of(proto: onnx.ModelProto) -> dict[str, np.ndarray]:
    feeds = {}
    for seed, value in enumerate(proto.graph.input):
        tensor = value.type.tensor_type
        array = random([dim.dim_value for dim in tensor.shape.dim], seed) * (0.8 if value.name == "grid" else 1)
        feeds[value.name] = array.astype(helper.tensor_dtype_to_np_dtype(tensor.elem_type))
    return feeds


def lower(
    proto: onnx.ModelProto, folder: Path, *arguments: str, preset: str = "gridsample"
) -> tuple[int, onnx.ModelProto | None]:
    """`talkreel graph lower`: its exit code, and the graph it wrote."""
    onnx.save(proto, folder / "in.onnx")
    code = main(
        ["graph", "lower", str(folder / "in.onnx"), "--preset", preset, "-o", str(folder / "out.onnx"), *arguments]
    )
    path = folder / "out.onnx"
    return code, onnx.load(path) if path.exists() else None


def assert_handled(
    proto: onnx.ModelProto, folder: Path, *arguments: str, preset: str = "gridsample", **lengths: int
) -> onnx.ModelProto:
    code, made = lower(proto, folder, *arguments, preset=preset)
    assert code == 0
    assert made is not None
    onnx.checker.check_model(made, full_check=True)
    source = fixed(proto, lengths)
    feeds = feeds_of(source)
    assert_same(run(source, feeds), run(made, feeds))
    return made


def assert_refused(
    proto: onnx.ModelProto,
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    *texts: str,
    preset: str = "gridsample",
    arguments: Sequence[str] = (),
) -> None:
    code, made = lower(proto, folder, *arguments, preset=preset)
    assert (code, made) == (2, None)
    lines = capsys.readouterr().err.strip().splitlines()
    assert len(lines) == 1
    for text in texts:
        assert text in lines[0]


def volumetric(proto: onnx.ModelProto) -> int:
    inferred = onnx.shape_inference.infer_shapes(proto, data_prop=True).graph
    ranks = {
        v.name: len(v.type.tensor_type.shape.dim) for v in [*inferred.input, *inferred.value_info, *inferred.output]
    }
    return sum(node.op_type == "GridSample" and ranks[node.output[0]] == 5 for node in inferred.node)


# Dimensions


def test_named_dimensions_get_their_lengths(tmp_path: Path) -> None:
    proto = sampling(volume=("n", 3, "d", 5, 6), grid=("n", 2, 3, 4, 3))
    made = assert_handled(proto, tmp_path, "--dim", "n=2", "--dim", "d=4", n=2, d=4)
    assert [dim.dim_value for dim in made.graph.input[0].type.tensor_type.shape.dim] == [2, 3, 4, 5, 6]


def test_dimensions_without_a_length_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    proto = sampling(volume=("n", 3, "d", 5, 6), grid=("n", 2, 3, 4, 3))
    assert_refused(proto, tmp_path, capsys, "n (of x), d (of x)", "NAME=LENGTH")
    assert_refused(proto, tmp_path, capsys, "d (of x)", arguments=["--dim", "n=1"])


def test_an_unnamed_dimension_is_told_by_its_place(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    proto = sampling()
    proto.graph.input[0].type.tensor_type.shape.dim[2].Clear()
    assert_refused(proto, tmp_path, capsys, "axis 2 of x")


def test_an_input_without_a_shape_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    proto = sampling()
    proto.graph.input[0].type.tensor_type.ClearField("shape")
    assert_refused(proto, tmp_path, capsys, "the input x", "has no shape")


# Forms of GridSample


@pytest.mark.parametrize("align", [0, 1])
@pytest.mark.parametrize("preset", ["gridsample", "rank4", "cpu"])
def test_both_alignments_are_handled(align: int, preset: str, tmp_path: Path) -> None:
    assert volumetric(assert_handled(sampling(align_corners=align), tmp_path, preset=preset)) == 0


@pytest.mark.parametrize("align", [0, 1])
@pytest.mark.parametrize("padding", ["border", "reflection"])
def test_other_paddings_are_refused(
    padding: str, align: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    proto = sampling(padding_mode=padding, align_corners=align)
    assert_refused(proto, tmp_path, capsys, "GridSample 'sample'", f"padding '{padding}'")


@pytest.mark.parametrize(("opset", "mode"), [(20, "nearest"), (20, "cubic"), (16, "nearest"), (16, "bicubic")])
def test_other_modes_are_refused(opset: int, mode: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert_refused(sampling(mode=mode, opset=opset), tmp_path, capsys, "GridSample 'sample'", f"mode '{mode}'")


@pytest.mark.parametrize("align", [0, 1])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("mode", ["linear", "nearest", "cubic"])
def test_sampling_of_pictures_stays(mode: str, padding: str, align: int, tmp_path: Path) -> None:
    attributes = {"mode": mode, "padding_mode": padding, "align_corners": align}
    proto = sampling(volume=(1, 3, 5, 6), grid=(1, 3, 4, 2), **attributes)
    made = assert_handled(proto, tmp_path, preset="cpu")
    (node,) = made.graph.node
    assert {a.name: helper.get_attribute_value(a) for a in node.attribute} == {
        name: value.encode() if isinstance(value, str) else value for name, value in attributes.items()
    }


@pytest.mark.parametrize("mode", ["linear", "nearest", "cubic"])
def test_sampling_of_pictures_means_the_same_in_a_lower_operator_set(mode: str, tmp_path: Path) -> None:
    proto = sampling(volume=(1, 3, 5, 6), grid=(1, 3, 4, 2), mode=mode, padding_mode="reflection", align_corners=1)
    assert_handled(proto, tmp_path, preset="rank4")


# Operator sets


@pytest.mark.parametrize("opset", range(16, 23))
@pytest.mark.parametrize("preset", ["gridsample", "rank4", "cpu"])
def test_each_operator_set_is_handled(opset: int, preset: str, tmp_path: Path) -> None:
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], pads=[1] * 6),
        helper.make_node("ReduceMean", ["c"], ["m"], axes=[2])
        if opset < 18
        else helper.make_node("ReduceMean", ["c", "two"], ["m"]),
        helper.make_node("Sub", ["c", "m"], ["s"]),
        helper.make_node("GridSample", ["s", "grid"], ["y"]),
    ]
    constants = {"w": random([2, 3, 3, 3, 3])} | ({"two": np.array([2])} if opset >= 18 else {})
    if opset < 20:  # ONNX Runtime's GridSample of volumes is there from 16 on, shape inference from 20 on
        nodes[3] = helper.make_node("GridSample", ["s", "grid"], ["y"], mode="bilinear")
    proto = graph(nodes, {"x": VOLUME, "grid": GRID}, constants, opset=opset)
    made = assert_handled(proto, tmp_path, preset=preset)
    imports = {entry.domain: entry.version for entry in made.opset_import}
    assert imports[""] == (opset if preset == "cpu" else min(opset, WEB_OPERATOR_SET))
    assert volumetric(made) == 0


@pytest.mark.parametrize("opset", [15, 23])
def test_other_operator_sets_are_refused(opset: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    proto = graph([helper.make_node("Relu", ["x"], ["y"])], {"x": VOLUME}, opset=opset)
    assert_refused(proto, tmp_path, capsys, f"operator set {opset}", "16 to 22")


# External data


def with_outside_weights(folder: Path, location: str) -> onnx.ModelProto:
    """A convolution whose weights lie in another file."""
    proto = graph([helper.make_node("Conv", ["x", "w"], ["y"])], {"x": VOLUME}, {"w": random([2, 3, 3, 3, 3])})
    tensor = proto.graph.initializer[0]
    (folder / "weights.bin").write_bytes(tensor.raw_data)
    onnx.external_data_helper.set_external_data(tensor, location=location)
    tensor.ClearField("raw_data")
    return proto


def test_weights_beside_the_graph_are_read_and_kept_inside(tmp_path: Path) -> None:
    whole = with_outside_weights(tmp_path, "weights.bin")
    code, made = lower(whole, tmp_path, preset="rank4")
    assert code == 0
    assert made is not None
    assert all(not tensor.external_data for tensor in made.graph.initializer)
    feeds = feeds_of(whole)
    whole.graph.initializer[0].CopyFrom(numpy_helper.from_array(random([2, 3, 3, 3, 3]), "w"))
    assert_same(run(whole, feeds), run(made, feeds))


def test_weights_elsewhere_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    inside = tmp_path / "inside"
    inside.mkdir()
    for location in ("../weights.bin", str(tmp_path / "weights.bin"), "a/../../weights.bin"):
        assert_refused(with_outside_weights(tmp_path, location), inside, capsys, "the weights of w lie outside")
    (inside / "link.bin").symlink_to(tmp_path / "weights.bin")
    assert_refused(with_outside_weights(tmp_path, "link.bin"), inside, capsys, "the weights of w lie outside")


def test_missing_weights_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    proto = with_outside_weights(tmp_path, "gone.bin")
    assert_refused(proto, tmp_path, capsys, "the weights of w are missing (gone.bin)")


# Subgraphs, functions, other domains, types


def test_if_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = helper.make_tensor_value_info("b", TensorProto.FLOAT, VOLUME)
    body = helper.make_graph([helper.make_node("Relu", ["x"], ["b"])], "body", [], [out])
    nodes = [
        helper.make_node("ReduceMax", ["x"], ["m"], keepdims=0),
        helper.make_node("Greater", ["m", "zero"], ["c"]),
        helper.make_node("If", ["c"], ["y"], name="choice", then_branch=body, else_branch=body),
    ]
    proto = graph(nodes, {"x": VOLUME}, {"zero": np.float32(0)})
    assert_refused(proto, tmp_path, capsys, "If 'choice' holds a subgraph", preset="rank4")


def test_loop_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    body = helper.make_graph(
        [helper.make_node("Identity", ["c"], ["d"]), helper.make_node("Add", ["v", "v"], ["w"])],
        "body",
        [
            helper.make_tensor_value_info("i", TensorProto.INT64, []),
            helper.make_tensor_value_info("c", TensorProto.BOOL, []),
            helper.make_tensor_value_info("v", TensorProto.FLOAT, VOLUME),
        ],
        [
            helper.make_tensor_value_info("d", TensorProto.BOOL, []),
            helper.make_tensor_value_info("w", TensorProto.FLOAT, VOLUME),
        ],
    )
    nodes = [helper.make_node("Loop", ["three", "yes", "x"], ["y"], name="thrice", body=body)]
    proto = graph(nodes, {"x": VOLUME}, {"three": np.int64(3), "yes": np.bool_(True)})
    assert_refused(proto, tmp_path, capsys, "Loop 'thrice' holds a subgraph", preset="rank4")


def test_local_functions_are_inlined(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    body = [helper.make_node("Relu", ["a"], ["b"]), helper.make_node("GridSample", ["b", "g"], ["c"])]
    function = helper.make_function("own", "Warp", ["a", "g"], ["c"], body, [helper.make_opsetid("", 20)])
    node = helper.make_node("Warp", ["x", "grid"], ["y"], domain="own")
    proto = graph([node], {"x": VOLUME, "grid": GRID}, functions=[function])
    made = assert_handled(proto, tmp_path)
    assert not made.functions
    assert "own.Warp" not in capsys.readouterr().out
    assert volumetric(made) == 0


def test_other_domains_are_left_alone_and_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    nodes = [
        helper.make_node("GridSample", ["x", "grid"], ["s"]),
        helper.make_node("Secret", ["s"], ["y"], domain="own", name="secret", strength=3),
    ]
    proto = graph(nodes, {"x": VOLUME, "grid": GRID})
    code, made = lower(proto, tmp_path)
    assert code == 0
    assert made is not None
    assert "their meaning is not known here: own.Secret" in capsys.readouterr().out
    (secret,) = (node for node in made.graph.node if node.domain == "own")
    assert (secret.op_type, helper.get_node_attr_value(secret, "strength")) == ("Secret", 3)
    assert volumetric(made) == 0


def test_an_unknown_operator_above_rank_4_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    nodes = [helper.make_node("Secret", ["x"], ["y"], domain="own", name="secret")]
    proto = graph(nodes, {"x": VOLUME})
    assert_refused(proto, tmp_path, capsys, "the shape of y is not known", preset="rank4")
    proto.graph.output[0].CopyFrom(helper.make_tensor_value_info("y", TensorProto.FLOAT, VOLUME))
    assert_refused(proto, tmp_path, capsys, "Secret 'secret': no rule", preset="rank4")


def test_float16_samplings_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert_refused(sampling(dtype=TensorProto.FLOAT16), tmp_path, capsys, "GridSample 'sample'", "only float32")


def test_float16_graphs_are_handled_in_float16(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], pads=[1] * 6),
        helper.make_node("Relu", ["c"], ["r"]),
        helper.make_node("AveragePool", ["r"], ["y"], kernel_shape=[1, 2, 2], strides=[1, 2, 2]),
    ]
    weight = (random([4, 3, 3, 3, 3]) / 9).astype(np.float16)
    proto = graph(nodes, {"x": (1, 3, 4, 6, 8)}, {"w": weight}, dtype=TensorProto.FLOAT16)
    code, made = lower(proto, tmp_path, preset="rank4")
    assert code == 0
    assert made is not None
    assert {value.type.tensor_type.elem_type for value in (*made.graph.input, *made.graph.output)} == {
        TensorProto.FLOAT16
    }
    (x,) = feeds_of(proto).values()
    (wanted,) = ReferenceEvaluator(proto).run(None, {"x": x})
    held = [dim.dim_value for dim in made.graph.input[0].type.tensor_type.shape.dim]
    (found,) = ReferenceEvaluator(made).run(None, {"x": x.reshape(held)})
    assert found.dtype == np.float16
    np.testing.assert_allclose(found.reshape(wanted.shape), wanted, atol=4e-3)


def test_what_is_no_graph_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "text.onnx").write_text("not a graph")
    for name, text in (("text", "is not an ONNX graph"), ("missing", "no such file")):
        assert main(["graph", "lower", str(tmp_path / f"{name}.onnx"), "--preset", "rank4"]) == 2
        assert text in capsys.readouterr().err
