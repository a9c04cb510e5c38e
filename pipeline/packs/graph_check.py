"""A graph against its manifest, before a session is made of it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from ..errors import PackError
from .manifest import ModelSpec, Tensor
from .onnx_file import Declared, External, read_onnx

if TYPE_CHECKING:
    from .pack import Pack

ELEMENTS = {
    "float32": 1, "uint8": 2, "int8": 3, "uint16": 4, "int16": 5, "int32": 6, "int64": 7, "bool": 9, "float16": 10,
    "float64": 11, "uint32": 12, "uint64": 13,
}  # fmt: skip
"""ONNX's numbers of element types, by numpy's names."""


def check_graph(pack: Pack, file: str, spec: ModelSpec) -> Path:
    """The path of a model's graph, when its tensors are the manifest's and its weights lie inside the pack.

    Raises:
        PackError: not a graph; a tensor is missing, unknown, or of another shape or element type; weights lie outside
        of the pack, in a file without size and hash, or beyond its end.
    """
    path = pack.path(file)
    graph = read_onnx(path)
    _check_tensors(path, "input", spec.inputs, graph.inputs)
    _check_tensors(path, "output", spec.outputs, graph.outputs)
    known = {tensor.name for tensor in spec.inputs.values()}
    if unknown := [name for name in graph.inputs if name not in known]:
        raise PackError(f"{path} needs the input {unknown[0]!r}, which the manifest does not name; it does not fit")
    for external in graph.external:
        _check_external(pack, path, file, external)
    return path


def _check_tensors(path: Path, kind: str, wanted: Mapping[str, Tensor], found: Mapping[str, Declared]) -> None:
    for tensor in wanted.values():
        if tensor.name not in found:
            raise PackError(f"{path} has no {kind} {tensor.name!r}; the manifest does not fit the graph")
        declared = found[tensor.name]
        if ELEMENTS.get(tensor.dtype) != declared.element:
            raise PackError(
                f"{path}: {kind} {tensor.name!r} is of ONNX's element type {declared.element}, the manifest says "
                f"{tensor.dtype}; the manifest does not fit the graph"
            )
        shape = declared.shape
        if shape is not None and not (
            len(shape) == len(tensor.shape)
            and all(a is None or b is None or a == b for a, b in zip(tensor.shape, shape, strict=True))
        ):
            raise PackError(
                f"{path}: {kind} {tensor.name!r} has shape {list(shape)}, the manifest says {list(tensor.shape)}; "
                "the manifest does not fit the graph"
            )


def _check_external(pack: Pack, path: Path, file: str, external: External) -> None:
    location = PurePosixPath(external.location.replace("\\", "/"))
    if not external.location or location.is_absolute() or ".." in location.parts or ":" in location.parts[0]:
        raise PackError(
            f"{path}: the weights of {external.tensor!r} lie outside of the pack ({external.location!r}); "
            "do not use this pack"
        )
    weights = pack.path(str(PurePosixPath(file).parent / location))
    if not weights.is_file() or weights.stat().st_size < external.end:
        raise PackError(f"{path}: the weights of {external.tensor!r} are not all in {weights}; fetch the pack again")
