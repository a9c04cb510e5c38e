"""Which convolutions may be quantised: those that no coordinate, index or softmax depends on."""

from __future__ import annotations

from collections.abc import Iterable

import onnx_ir as ir

from ..convert.tracing import SAMPLING
from ..lower.conv2d import conv2d
from ..lower.passes import CannotLowerError
from ..model import constant, describe

EXPONENTIAL = {"Exp", "LogSoftmax", "Softmax"}
"""An error before them is multiplied."""


def candidates(model: ir.Model, left: dict[str, str]) -> list[list[ir.Node]]:
    """Convolutions of pictures that may be quantised, in groups that read the same value, in order.

    A graph that samples is in two parts: what makes coordinates and weights of samples, and what becomes of the
    samples. The parts are told by tracing: a *sensitive* node samples at coordinates, makes indices or conditions
    of numbers, or takes exponentials. A candidate feeds no sensitive node, and it depends on every sensitive node
    that feeds no other: so a mask that is made beside the coordinates is no candidate either. Where nothing is
    sensitive, all convolutions are candidates.

    Args:
        model: prepared.
        left: gets the other convolutions, each with the reason.
    """
    sensitive = [node for node in model.graph if _sensitive(node)]
    feeding = upstream(sensitive)
    last = [node for node in sensitive if node not in feeding]
    reached = [downstream([node]) for node in last]
    groups: dict[ir.Value, list[ir.Node]] = {}
    for node in model.graph:
        if node.op_type != "Conv" or node.domain:
            continue
        if node in feeding:
            left[describe(node)] = "coordinates, weights of samples or an exponential depend on it"
        elif not all(node in found for found in reached):
            left[describe(node)] = "it works on values beside the samples"
        else:
            try:
                groups.setdefault(conv2d(node).value, []).append(node)
            except CannotLowerError as error:
                left[describe(node)] = str(error)
    return list(groups.values())


def upstream(nodes: Iterable[ir.Node]) -> set[ir.Node]:
    """All nodes whose results the given ones depend on, themselves only where one depends on another."""
    found: set[ir.Node] = set()
    waiting = list(nodes)
    while waiting:
        for value in waiting.pop().inputs:
            maker = value.producer() if value is not None else None
            if maker is not None and maker not in found:
                found.add(maker)
                waiting.append(maker)
    return found


def downstream(nodes: Iterable[ir.Node]) -> set[ir.Node]:
    """All nodes that depend on the given ones, themselves not included unless one depends on another."""
    found: set[ir.Node] = set()
    waiting = list(nodes)
    while waiting:
        for value in waiting.pop().outputs:
            new = {use.node for use in value.uses()} - found
            found |= new
            waiting.extend(new)
    return found


def _sensitive(node: ir.Node) -> bool:
    if node.op_type in EXPONENTIAL or any((node.op_type, place) in SAMPLING for place in range(len(node.inputs))):
        return True
    reads_floats = any(_varies(value) for value in node.inputs)
    return reads_floats and any(value.dtype is not None and not _floats(value.dtype) for value in node.outputs)


def _varies(value: ir.Value | None) -> bool:
    return value is not None and value.dtype is not None and _floats(value.dtype) and constant(value) is None


def _floats(dtype: ir.DataType) -> bool:
    return dtype.is_floating_point()
