"""What values a graph's tensors take, seen by running it on sample inputs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir
from numpy.typing import NDArray

from ..feeds import Feeds
from ..lower.editing import Editor
from ..model import static_shape
from .running import opened

F32 = NDArray[np.float32]

SAMPLE = 1 << 14
"""Numbers kept of a tensor and run: the tails are known besides, from the extremes."""


@dataclass(frozen=True)
class Observed:
    """Values of one tensor over all sample inputs."""

    low: float
    high: float
    sample: F32
    """[n] evenly spaced over each run's tensor."""


def observe(model: ir.Model, names: Sequence[str], feeds: Iterable[Feeds], threads: int = 2) -> dict[str, Observed]:
    """Run a graph on sample inputs, and say what the named values are.

    The graph is run with a reduction and a sample beside each value, so memory does not grow with the values.

    Raises:
        ModelError: the graph does not run. GraphError: the inputs do not fit, or a shape is not known.
    """
    probed = model.clone()
    graph = probed.graph
    values = {str(value.name): value for value in [*graph.inputs, *(v for node in graph for v in node.outputs)]}
    graph.outputs.clear()
    end = ir.node("Identity", [values[names[0]]])
    end.outputs[0].name = "calibration_end"
    graph.append(end)
    editor = Editor(probed, before=end)
    made: dict[str, list[str]] = {}
    for name in names:
        probes = _probe(editor, values[name])
        graph.outputs.extend(probes)
        made[name] = [str(probe.name) for probe in probes]
    graph.remove(end)
    rows: dict[str, list[list[np.ndarray]]] = {name: [] for name in names}
    with opened(probed, threads) as runner:
        for feed in feeds:
            found = runner.run(runner.feeds([feed]))
            for name, probes_of in made.items():
                rows[name].append([found[probe] for probe in probes_of])
    return {name: _pooled(runs) for name, runs in rows.items()}


def _probe(editor: Editor, value: ir.Value) -> list[ir.Value]:
    shape = static_shape(value)
    size = math.prod(shape)
    step = max(1, size // SAMPLE)
    while step > 1 and any(math.gcd(step, length) > 1 for length in shape):
        step -= 1  # a step in time with a row would see a few columns only
    flat = editor.reshape(value, [size])
    return [
        editor.op("ReduceMin", value, keepdims=0),
        editor.op("ReduceMax", value, keepdims=0),
        editor.slice(flat, 0, 0, size, step),
    ]


def _pooled(runs: Sequence[Sequence[np.ndarray]]) -> Observed:
    lows, highs, samples = zip(*runs, strict=True)
    return Observed(
        float(min(float(low) for low in lows)),
        float(max(float(high) for high in highs)),
        np.concatenate(samples),
    )
