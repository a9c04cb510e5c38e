"""Which values do not fit half precision, measured by running the float32 graph on sample inputs."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path

import ml_dtypes
import numpy as np
import onnx_ir as ir
from numpy.typing import NDArray

from ...errors import GraphError
from ..lower.editing import Editor
from ..model import save

Feeds = Mapping[str, NDArray[np.generic]]

HEADROOM = 8.0
"""Factor between the largest magnitude seen and the largest that fits: calibration sees a sample of the inputs."""

WEIGHT_ERROR = {ir.DataType.FLOAT16: 2.0**-11, ir.DataType.BFLOAT16: 2.0**-8}
"""Relative error of rounded weights, by norm, above which they stay float32: the greatest error of one number in the
type's range. Above it, many are too small for the type and lose bits."""

RANGES = {ir.DataType.FLOAT16: (2.0**-14, 65504.0), ir.DataType.BFLOAT16: (2.0**-126, 3.39e38)}
"""Smallest normal and largest finite number of each type."""

NUMPY_TYPES = {ir.DataType.FLOAT16: np.dtype(np.float16), ir.DataType.BFLOAT16: np.dtype(ml_dtypes.bfloat16)}


def magnitudes(model: ir.Model, calibration: Sequence[Feeds]) -> dict[str, float]:
    """The largest magnitude of every float32 value over all sample inputs, by the value's name.

    The graph is run on the CPU with a maximum beside each value, so memory does not grow with the values.

    Raises:
        GraphError: the sample inputs do not fit the graph, or it does not run.
    """
    probed = model.clone()
    graph = probed.graph
    values = [value for value in graph.inputs if value.dtype == ir.DataType.FLOAT]
    values += [value for node in graph for value in node.outputs if value.name and value.dtype == ir.DataType.FLOAT]
    graph.outputs.clear()
    names: dict[str, str] = {}
    nodes = list(graph)
    followers = dict(pairwise(nodes))
    for value in values:
        producer = value.producer()
        before = nodes[0] if producer is None else followers.get(producer)
        if before is None:  # the last node: something to stand in front of
            before = ir.node("Identity", [value])
            graph.append(before)
            followers[nodes[-1]] = before
        editor = Editor(probed, before=before)
        largest = editor.op("ReduceMax", editor.op("Abs", value), keepdims=0)
        graph.outputs.append(largest)
        names[str(largest.name)] = str(value.name)
    found: dict[str, float] = dict.fromkeys(names.values(), 0.0)
    for maxima in _run(probed, calibration, list(names)):
        for (_, name), maximum in zip(names.items(), maxima, strict=True):
            found[name] = max(found[name], float(maximum)) if np.isfinite(maximum) else float("inf")
    return found


def _run(model: ir.Model, calibration: Sequence[Feeds], outputs: list[str]) -> list[list[np.ndarray]]:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    with tempfile.TemporaryDirectory(prefix="talkreel-") as folder:
        path = Path(folder) / "probed.onnx"
        save(model, path)
        try:
            session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
            return [session.run(outputs, dict(feeds)) for feeds in calibration]
        except Exception as error:  # onnxruntime's classes share no root but this
            raise GraphError(f"calibration: the graph does not run on its sample inputs ({error})") from error


def unfit_nodes(
    model: ir.Model, half: ir.DataType, measured: Mapping[str, float], headroom: float = HEADROOM
) -> dict[ir.Node, str]:
    """Nodes that read or make a value, or hold weights, that the type `half` cannot carry; each with the reason."""
    limit, smallest = RANGES[half][1] / headroom, RANGES[half][0]
    unfit: dict[ir.Node, str] = {}
    for node in model.graph:
        for value in (*node.inputs, *node.outputs):
            if value is None or value.dtype != ir.DataType.FLOAT:
                continue
            if value.const_value is not None:
                why = _weights(value, half)
            else:
                why = _range(measured.get(str(value.name)), limit, smallest)
            if why:
                unfit.setdefault(node, f"{value.name} {why}")
    return unfit


def _range(largest: float | None, limit: float, smallest: float) -> str:
    if largest is None or largest == 0:
        return ""
    if largest > limit:
        return f"reaches {largest:.3g}"
    return f"stays below {largest:.3g}" if largest < smallest else ""


def _weights(value: ir.Value, half: ir.DataType) -> str:
    assert value.const_value is not None
    array = value.const_value.numpy()
    with np.errstate(over="ignore"):
        rounded = array.astype(NUMPY_TYPES[half]).astype(np.float32)
    if not np.isfinite(rounded).all():
        return f"holds {np.abs(array).max():.3g}"
    norm = float(np.linalg.norm(array))
    lost = float(np.linalg.norm(array - rounded))
    return f"loses {lost / norm:.1%} when rounded" if lost > WEIGHT_ERROR[half] * norm else ""
