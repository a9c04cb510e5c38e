"""Values inside two graphs that can be compared."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import onnx_ir as ir

from .shapes import known_shape

BATCH_BYTES = 256 << 20
"""Values fetched in one run take about this much."""


def shared_values(first: ir.Model, second: ir.Model) -> list[tuple[str, int]]:
    """Names and bytes of the float values that nodes of both graphs make under one name and of one size.

    In the first graph's order; graph outputs are not among them.
    """
    others = {value.name: value for node in second.graph for value in node.outputs}
    found = []
    for node in first.graph:
        for value in node.outputs:
            other = others.get(value.name)
            if other is None or value.is_graph_output() or value.dtype != other.dtype or not _is_float(value):
                continue
            shape, other_shape = known_shape(value), known_shape(other)
            if shape is not None and other_shape is not None and math.prod(shape) == math.prod(other_shape):
                found.append((str(value.name), 4 * math.prod(shape)))
    return found


def expose(model: ir.Model, names: Sequence[str]) -> ir.Model:
    """A copy of a graph with these values as outputs besides its own."""
    copy = model.clone()
    values = {value.name: value for node in copy.graph for value in node.outputs}
    copy.graph.outputs.extend(values[name] for name in names)
    return copy


def batches(values: Sequence[tuple[str, int]], limit: int = BATCH_BYTES) -> Iterator[list[str]]:
    """Names in groups of at most `limit` bytes, or of one."""
    names: list[str] = []
    total = 0
    for name, size in values:
        if names and total + size > limit:
            yield names
            names, total = [], 0
        names.append(name)
        total += size
    if names:
        yield names


def _is_float(value: ir.Value) -> bool:
    return value.dtype in (ir.DataType.FLOAT, ir.DataType.FLOAT16, ir.DataType.DOUBLE)
