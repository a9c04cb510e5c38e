"""Reading an ONNX graph for rewriting: what is accepted, with every shape known, and saved again."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
from onnx_ir.passes.common import (
    IdentityEliminationPass,
    InlinePass,
    LiftConstantsToInitializersPass,
    RemoveInitializersFromInputsPass,
    RemoveUnusedNodesPass,
    TopologicalSortPass,
)

from ..errors import GraphError, OutputError
from .folding import fold_constants
from .shapes import infer_shapes, known_shape

OPSETS = range(16, 23)
"""Versions of the standard operators that the tools know; GridSample begins at 16."""

EXTERNAL_ABOVE = 1_800_000_000
"""Bytes of weights above which a file keeps them beside itself; protobuf ends at 2 GiB."""


def load(path: str | Path) -> ir.Model:
    """Read a graph from a file.

    Weights kept outside the file are read from beside it, never from elsewhere.

    Raises:
        GraphError: no such file, not ONNX, or external data outside the file's folder.
    """
    path = Path(path)
    try:
        proto = onnx.load(path, load_external_data=False)
    except FileNotFoundError as error:
        raise GraphError(f"{path}: no such file; give the path of an ONNX graph") from error
    except Exception as error:  # protobuf's own class differs from release to release
        raise GraphError(f"{path} is not an ONNX graph ({error}); give a .onnx file") from error
    if not proto.HasField("graph"):
        raise GraphError(f"{path} is not an ONNX graph (it holds none); give a .onnx file")
    for tensor in onnx.external_data_helper._get_all_tensors(proto):
        if tensor.data_location == onnx.TensorProto.EXTERNAL:
            _check_external(path, tensor)
    model = ir.from_proto(proto)
    ir.external_data.set_base_dir(model.graph, path.parent)
    return ir.external_data.load_to_model(model)


def _check_external(path: Path, tensor: onnx.TensorProto) -> None:
    location = next((entry.value for entry in tensor.external_data if entry.key == "location"), "")
    parts = PurePosixPath(location.replace("\\", "/"))
    inside = (path.parent / parts).resolve().is_relative_to(path.parent.resolve())
    if parts.is_absolute() or ".." in parts.parts or not inside:
        raise GraphError(
            f"{path}: the weights of {tensor.name} lie outside its folder ({location}); put them beside it"
        )
    if not (path.parent / parts).is_file():
        raise GraphError(f"{path}: the weights of {tensor.name} are missing ({location}); put that file beside it")


def save(model: ir.Model, path: str | Path) -> None:
    """Write a graph; weights above `EXTERNAL_ABOVE` bytes go to `<name>.data` beside it.

    Raises:
        OutputError: the file cannot be written there.
    """
    path = Path(path)
    weights = sum(v.const_value.nbytes for v in model.graph.initializers.values() if v.const_value is not None)
    try:
        ir.save(model, path, external_data=f"{path.name}.data" if weights > EXTERNAL_ABOVE else None)
    except OSError as error:
        raise OutputError(f"{path} cannot be written ({error.strerror}); choose another place") from error


def prepare(model: ir.Model, dims: Mapping[str, int] | None = None) -> ir.Model:
    """The same function with nothing hidden: inlined, constants folded, every shape inferred.

    The model is changed in place and returned. `dims` gives a length to named dimensions of the inputs.

    Raises:
        GraphError: an operator set outside `OPSETS`, a subgraph (If, Loop, Scan), or a dimension without a length.
    """
    opset = model.opset_imports.get("")
    if opset not in OPSETS:
        raise GraphError(
            f"operator set {opset} of {name_of(model)} is not among {OPSETS.start} to {OPSETS.stop - 1}; "
            "convert it with onnx.version_converter or export it anew"
        )
    InlinePass()(model)
    for node in model.graph.all_nodes():
        if any(a.type in (ir.AttributeType.GRAPH, ir.AttributeType.GRAPHS) for a in node.attributes.values()):
            raise GraphError(
                f"{describe(node)} holds a subgraph, which cannot be rewritten safely; "
                "export without control flow, or fold its condition first"
            )
    _fix_dimensions(model, dims or {})
    for step in (
        LiftConstantsToInitializersPass(lift_all_constants=True, size_limit=0),
        RemoveInitializersFromInputsPass(),
        TopologicalSortPass(),
    ):
        step(model)
    infer_shapes(model)
    fold_constants(model)
    return clean(model)


def clean(model: ir.Model) -> ir.Model:
    """Drop what nothing uses and nodes that do nothing; in place."""
    IdentityEliminationPass()(model)
    RemoveUnusedNodesPass()(model)
    return model


def _fix_dimensions(model: ir.Model, dims: Mapping[str, int]) -> None:
    unknown: dict[str, str] = {}
    for value in model.graph.inputs:
        if value.is_initializer():
            continue
        if value.shape is None:
            raise GraphError(f"the input {value.name} of {name_of(model)} has no shape; export it with one")
        lengths: list[int | ir.SymbolicDim] = list(value.shape)
        for axis, size in enumerate(lengths):
            if isinstance(size, int):
                continue
            known = dims.get(size.value) if size.value else None
            if known is None:
                unknown.setdefault(size.value or f"axis {axis} of {value.name}", str(value.name))
            else:
                lengths[axis] = known
        value.shape = ir.Shape(lengths)
    if unknown:
        listed = ", ".join(f"{size} (of {name})" if size[:4] != "axis" else size for size, name in unknown.items())
        raise GraphError(f"dimensions without a length: {listed}; give each one, NAME=LENGTH")


def static_shape(value: ir.Value) -> tuple[int, ...]:
    """The lengths of a value's axes.

    Raises:
        GraphError: they are not all known.
    """
    shape = known_shape(value)
    if shape is None:
        raise GraphError(f"the shape of {value.name} is not known; infer it, or give the graph's dimensions")
    return shape


def constant(value: ir.Value | None) -> np.ndarray | None:
    """What a value always is, or None when it depends on an input or is absent."""
    if value is None or value.const_value is None:
        return None
    return value.const_value.numpy()


def attribute(node: ir.Node, name: str, default: Any = None) -> Any:
    """An attribute's plain Python value (int, float, str, list), or the default when it is not given."""
    found = node.attributes.get(name)
    if found is None:
        return default
    return list(found.value) if isinstance(found.value, tuple) else found.value


def describe(node: ir.Node) -> str:
    """A node in a message: operator, name or first output."""
    return f"{node.op_type} {node.name or node.outputs[0].name!r}"


def name_of(model: ir.Model) -> str:
    """A graph in a message."""
    return f"the graph {model.graph.name!r}" if model.graph.name else "the graph"
