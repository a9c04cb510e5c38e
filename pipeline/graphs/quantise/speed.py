"""Speed of one graph against another on this machine, and what its 8-bit kernels can do."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from statistics import median

import numpy as np
import onnx_ir as ir

from ..feeds import Feeds
from ..lower.editing import Editor
from ..model import constant
from ..shapes import known_shape
from .running import opened

MAGNITUDE = 127


def speedup(reference: ir.Model, other: ir.Model, feeds: Feeds, *, threads: int = 2, runs: int = 3) -> float:
    """Seconds of the reference over those of the other: the median of paired runs, after one each to warm up."""
    ratios = []
    with opened(reference, threads) as first, opened(other, threads) as second:
        arrays = [(runner, runner.feeds([feeds])) for runner in (first, second)]
        for turn in range(runs + 1):
            seconds = []
            for runner, given in arrays:
                start = time.perf_counter()
                runner.run(given)
                seconds.append(time.perf_counter() - start)
            if turn:
                ratios.append(seconds[0] / seconds[1])
    return median(ratios)


def random_feeds(model: ir.Model, seed: int = 0) -> Feeds:
    """Normal numbers for every input, float32, for timing."""
    random = np.random.Generator(np.random.PCG64(seed))
    shapes = {str(value.name): known_shape(value) or () for value in model.graph.inputs}
    return {name: random.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}


def saturates() -> bool:
    """Whether ONNX Runtime's 8-bit convolution loses sums of two products above 16 bits on this processor.

    Processors with AVX2 but without VNNI add pairs of products in 16 bits; with weights of 7 bits none overflows.
    """
    channels = 64
    given = ir.Value(name="x", type=ir.TensorType(ir.DataType.FLOAT), shape=ir.Shape([1, channels, 8, 8]))
    end = ir.node("Identity", [given])
    graph = ir.Graph([given], [], nodes=[end], opset_imports={"": 20}, name="saturation")
    model = ir.Model(graph, ir_version=10)
    editor = Editor(model, before=end)
    one, zero = editor.const(np.float32(1)), editor.const(np.uint8(0))
    weight = np.full((channels, channels, 1, 1), MAGNITUDE, np.int8)
    scales, zeros = np.ones(channels, np.float32), np.zeros(channels, np.int8)
    operands = [
        editor.op("DequantizeLinear", editor.op("QuantizeLinear", given, one, zero), one, zero),
        editor.op("DequantizeLinear", *(editor.const(array) for array in (weight, scales, zeros)), axis=0),
    ]
    step = editor.const(np.float32(channels * MAGNITUDE))
    made = editor.op("QuantizeLinear", editor.op("Conv", *operands), step, zero)
    graph.outputs.append(editor.op("DequantizeLinear", made, step, zero))
    graph.remove(end)
    with opened(model, 1) as runner:
        (found,) = runner.run({"x": np.full((1, channels, 8, 8), 255, np.float32)}).values()
    return bool(found.min() < 255 * channels * MAGNITUDE * 0.99)


def multiply_adds(nodes: Sequence[ir.Node]) -> int:
    """Of convolutions."""
    shapes = [(known_shape(node.outputs[0]), constant(node.inputs[1])) for node in nodes]
    return sum(math.prod(made) * math.prod(w.shape[1:]) for made, w in shapes if made is not None and w is not None)
