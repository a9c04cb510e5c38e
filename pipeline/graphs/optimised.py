"""What ONNX Runtime makes of a graph on this machine's CPU: fused, and in the blocked layout it computes in."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

import onnx
import onnx_ir as ir

from ..errors import GraphError
from .bounds import bound_shapes
from .model import load, prepare
from .shapes import infer_node, known_shape

NCHWC = "com.microsoft.nchwc"

# Fused operators that have the shape rule of a standard one, and how many inputs that one takes.
LIKE_STANDARD = {
    (NCHWC, "Conv"): 3,
    (NCHWC, "MaxPool"): 1,
    (NCHWC, "AveragePool"): 1,
    (NCHWC, "GlobalMaxPool"): 1,
    (NCHWC, "GlobalAveragePool"): 1,
    ("com.microsoft", "FusedConv"): 3,
    ("com.microsoft", "FusedGemm"): 3,
    ("com.microsoft", "FusedMatMul"): 2,
}
STANDARD_NAME = {"FusedConv": "Conv", "FusedGemm": "Gemm", "FusedMatMul": "MatMul"}


def optimised(path: str | Path, maximum: Mapping[str, int] | None = None) -> ir.Model:
    """ONNX Runtime's own form of a model, every shape known, nodes in the order in which it runs (and writes) them.

    Made in a child process, so that this one does not keep the memory that loading takes; the weights stay out.

    Args:
        path: the .onnx file.
        maximum: greatest length of each named dimension of the inputs.

    Raises:
        GraphError: the file does not load, or a shape is not known.
    """
    source = bound_shapes(prepare(load(path), maximum))
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder) / "optimised.onnx"
        child = subprocess.run(
            [sys.executable, "-m", __name__, str(path), str(made)], capture_output=True, text=True, check=False
        )
        if child.returncode:
            lines = child.stderr.strip().splitlines() or [f"exit status {child.returncode}"]
            raise GraphError(f"{path} does not load in ONNX Runtime: {lines[-1]}")
        model = ir.from_proto(onnx.load(made, load_external_data=False))
    shapes = {value.name: value for node in source.graph for value in node.outputs}
    for value in model.graph.inputs:  # ONNX Runtime leaves named dimensions
        shapes[value.name] = next(v for v in source.graph.inputs if v.name == value.name)
        value.shape = shapes[value.name].shape
    for node in model.graph:
        _infer(node, shapes, dict(model.opset_imports))
    return bound_shapes(model)


def _infer(node: ir.Node, named: Mapping[str | None, ir.Value], opsets: dict[str, int]) -> None:
    """Shapes of a node's outputs: of the same value before the rewriting, or by the operator's rule."""
    for value in node.outputs:
        before = named.get(value.name)
        if before is not None and known_shape(before) is not None:
            value.shape, value.type = before.shape, before.type
    if all(known_shape(value) is not None and value.dtype is not None for value in node.outputs if value.name):
        return
    taken = LIKE_STANDARD.get((node.domain, node.op_type))
    if taken is not None:
        plain = {"alpha", "activation", "activation_params", "mode", "transBatchA", "transBatchB"}
        twin = ir.node(
            STANDARD_NAME.get(node.op_type, node.op_type),
            list(node.inputs[:taken]),
            attributes={name: a for name, a in node.attributes.items() if name not in plain},
        )
        twin.outputs[0].name = node.outputs[0].name
        infer_node(twin, opsets)
        node.outputs[0].shape, node.outputs[0].type = twin.outputs[0].shape, twin.outputs[0].type
        for index in range(len(twin.inputs)):
            twin.replace_input_with(index, None)  # the twin is no user of them
    elif node.domain == NCHWC:
        _reordered(node)
    elif node.domain == "com.microsoft" and node.op_type == "QLinearConv" and "channels_last" in node.attributes:
        _channels_last(node)
    else:
        infer_node(node, opsets)


def _reordered(node: ir.Node) -> None:
    source = node.inputs[0]
    shape = None if source is None else known_shape(source)
    if source is None or shape is None:
        return
    if node.op_type == "ReorderInput":
        last = bool(node.attributes.get_int("channels_last", 0))
        batch, channels, *space = (shape[0], shape[-1], *shape[1:-1]) if last else shape
        blocks = [_channels(use.node) for use in node.outputs[0].uses()]
        shape = (batch, next((size for size in blocks if size), channels), *space)
    elif node.op_type == "ReorderOutput":
        channels = node.attributes.get_int("channels", shape[1])
        last = bool(node.attributes.get_int("channels_last", 0))
        shape = (shape[0], *shape[2:], channels) if last else (shape[0], channels, *shape[2:])
    elif node.op_type == "Upsample":
        scales = node.attributes["scales"].as_ints()
        shape = tuple(size * scale for size, scale in zip(shape, scales, strict=True))
    node.outputs[0].shape, node.outputs[0].type = ir.Shape(shape), source.type


def _channels_last(node: ir.Node) -> None:
    """An 8-bit convolution of [N, H, W, C]; the weights, input 3, stay [O, I, kH, kW]."""
    source, weight = node.inputs[0], node.inputs[3]
    given, kernel = (None if value is None else known_shape(value) for value in (source, weight))
    if source is None or given is None or kernel is None:
        return
    batch, *space, _ = given
    axes = len(space)
    pads = node.attributes.get_ints("pads", [0] * 2 * axes)
    steps, spread = (node.attributes.get_ints(name, [1] * axes) for name in ("strides", "dilations"))
    sides = [
        (space[i] + pads[i] + pads[axes + i] - spread[i] * (kernel[2 + i] - 1) - 1) // steps[i] + 1 for i in range(axes)
    ]
    node.outputs[0].shape, node.outputs[0].type = ir.Shape((batch, *sides, kernel[0])), source.type


def _channels(node: ir.Node) -> int:
    """Input channels of a blocked convolution, padded as its weights are; 0 for another operator."""
    weight = node.inputs[1] if node.op_type == "Conv" else None
    shape = None if weight is None else known_shape(weight)
    return 0 if shape is None else shape[1] * node.attributes.get_int("group", 1)


def _write(path: str, made: str) -> None:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = 1
    options.optimized_model_filepath = made
    options.add_session_config_entry("session.optimized_model_external_initializers_file_name", "weights.bin")
    onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


if __name__ == "__main__":
    _write(sys.argv[1], sys.argv[2])
