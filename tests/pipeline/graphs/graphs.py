"""Small graphs for tests: made, run, compared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import onnx
import onnx_ir as ir
import onnxruntime
from onnx import helper, numpy_helper

from pipeline.graphs.model import prepare

Shapes = Mapping[str, Sequence[int | str]]


def proto(
    nodes: Sequence[onnx.NodeProto],
    inputs: Shapes,
    outputs: Sequence[str],
    constants: Mapping[str, np.ndarray] | None = None,
    *,
    opset: int = 20,
    dtype: int = onnx.TensorProto.FLOAT,
) -> onnx.ModelProto:
    """A checked graph with inputs of one type; outputs' types are inferred."""
    graph = helper.make_graph(
        nodes,
        "test",
        [helper.make_tensor_value_info(name, dtype, shape) for name, shape in inputs.items()],
        [helper.make_value_info(name, onnx.TypeProto()) for name in outputs],
        [numpy_helper.from_array(np.asarray(array), name) for name, array in (constants or {}).items()],
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)
    inferred = onnx.shape_inference.infer_shapes(made, check_type=True, strict_mode=True, data_prop=True)
    onnx.checker.check_model(inferred)
    return inferred


def model(
    nodes: Sequence[onnx.NodeProto],
    inputs: Shapes,
    outputs: Sequence[str],
    constants: Mapping[str, np.ndarray] | None = None,
    *,
    opset: int = 20,
) -> ir.Model:
    """The same, prepared for passes."""
    return prepare(ir.from_proto(proto(nodes, inputs, outputs, constants, opset=opset)))


def run(graph: ir.Model | onnx.ModelProto, feeds: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """What ONNX Runtime's CPU provider makes of it, without its own rewriting; feeds are given the inputs' shapes."""
    made = ir.to_proto(graph) if isinstance(graph, ir.Model) else graph
    made.ir_version = 10
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(made.SerializeToString(), options, ["CPUExecutionProvider"])
    shaped = {value.name: feeds[value.name].reshape(value.shape) for value in session.get_inputs()}
    names = [value.name for value in session.get_outputs()]
    return dict(zip(names, session.run(names, shaped), strict=True))


def assert_same(before: Mapping[str, np.ndarray], after: Mapping[str, np.ndarray], *, tolerance: float = 2e-5) -> None:
    """Equal outputs, up to rounding relative to the largest value and to the shape the boundary was given."""
    assert before.keys() == after.keys()
    for name, wanted in before.items():
        found = after[name].reshape(wanted.shape)
        assert found.dtype == wanted.dtype
        if wanted.dtype.kind == "f":
            scale = max(1.0, float(np.abs(wanted).max(initial=0.0)))
            np.testing.assert_allclose(found, wanted, rtol=0, atol=tolerance * scale)
        else:
            np.testing.assert_array_equal(found, wanted)


def random(shape: Sequence[int], seed: int = 0) -> np.ndarray:
    """Seeded normal numbers, float32."""
    return np.random.default_rng(seed).standard_normal(tuple(shape)).astype(np.float32)
