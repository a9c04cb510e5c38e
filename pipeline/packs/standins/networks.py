"""The networks whose structure is free: products and activations, as many weights as published."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from onnx import ModelProto

from ...graphs.standins.weights import RELU, WeightSource
from ...graphs.standins.writer import GraphWriter

POINTS = 21
BINS = 66
LIPS = (6, 12, 14, 17, 19, 20)
"""Keypoints of the mouth."""

LANDMARKS = 203
POOL = 16
"""Side of the squares over which a network that reads a picture takes its mean first."""

# What the pooled picture, 0..1 with a spread of about 0.2, is multiplied by.
CONTRAST = 4.0


def motion_extractor(widths: tuple[int, int], weights: WeightSource) -> ModelProto:
    """`img` [1, 3, 256, 256] to pose bins, `t`, `exp`, `scale` and `kp` of a face that fills the crop's middle.

    The outputs stand in another order than in any list of them: they are to be bound by name.
    """
    writer = GraphWriter(weights)
    hidden = _read_picture(writer, "extractor", 256, widths)

    def head(name: str, size: int, spread: float, middle: np.ndarray) -> str:
        made = _linear(writer, hidden, f"extractor/{name}", widths[1], size, spread, bias=False)
        return writer.node("Add", made, writer.constant(middle.astype(np.float32).reshape(1, size)), name=name)

    bins = -((np.arange(BINS) - 33) ** 2) / 8.0  # a pose near 33 * 3 - 97.5 = 1.5 degrees
    outputs = {
        head("kp", 3 * POINTS, 0.01, _face()): (1, 3 * POINTS),
        head("scale", 1, 0.01, np.array([1.3])): (1, 1),
        head("exp", 3 * POINTS, 0.003, np.zeros(3 * POINTS)): (1, 3 * POINTS),
        head("t", 3, 0.01, np.array([0.0, 0.05, 0.0])): (1, 3),
        **{head(angle, BINS, 0.2, bins): (1, BINS) for angle in ("roll", "yaw", "pitch")},
    }
    return writer.model("motion_extractor", {"img": (1, 3, 256, 256)}, outputs)


def _face() -> np.ndarray:
    """[21, 3] canonical keypoints in -0.35..0.35, those of the mouth in a mouth's place."""
    random = np.random.Generator(np.random.PCG64(21))
    points = random.uniform((-0.3, -0.35, -0.1), (0.3, 0.3, 0.1), (POINTS, 3))
    points[list(LIPS)] = random.uniform((-0.1, 0.15, 0.05), (0.1, 0.22, 0.1), (len(LIPS), 3))
    return points


def stitching(widths: Sequence[int], weights: WeightSource) -> ModelProto:
    """`input` [1, 126] to `output` [1, 65]: small deltas of keypoints, and a shift."""
    return _perceptron("stitching", 6 * POINTS, 3 * POINTS + 2, widths, weights)


def lip_closing(widths: Sequence[int], weights: WeightSource) -> ModelProto:
    """`input` [1, 65] to `output` [1, 63]: small deltas of keypoints."""
    return _perceptron("lip", 3 * POINTS + 2, 3 * POINTS, widths, weights)


def _perceptron(name: str, given: int, made: int, widths: Sequence[int], weights: WeightSource) -> ModelProto:
    writer = GraphWriter(weights)
    x, width = "input", given
    for index, hidden in enumerate(widths):
        x = writer.node("Relu", _linear(writer, x, f"{name}/{index}", width, hidden, RELU))
        width = hidden
    output = _linear(writer, x, f"{name}/output", width, made, 0.01, made="output")
    return writer.model(name, {"input": (1, given)}, {output: (1, made)})


def landmarks(widths: tuple[int, int], weights: WeightSource) -> ModelProto:
    """`input` [1, 3, 224, 224] to `output` [1, 406]. The published tensors are not known here: nothing reads it."""
    writer = GraphWriter(weights)
    hidden = _read_picture(writer, "landmarks", 224, widths)
    output = _linear(writer, hidden, "landmarks/output", widths[1], 2 * LANDMARKS, 0.1, made="output")
    return writer.model("landmarks", {"input": (1, 3, 224, 224)}, {output: (1, 2 * LANDMARKS)})


def _read_picture(writer: GraphWriter, name: str, side: int, widths: tuple[int, int]) -> str:
    """A picture's pooled pixels through two layers: [1, widths[1]] in -1..1."""
    image = {"extractor": "img"}.get(name, "input")
    flat = 3 * (side // POOL) ** 2
    pooled = writer.node("Sub", writer.average_pool(image, (POOL, POOL)), writer.scalar(0.5))
    x = writer.node("Reshape", pooled, writer.integers(1, flat))
    x = writer.node("Tanh", _linear(writer, x, f"{name}/hidden0", flat, widths[0], CONTRAST))
    return writer.node("Tanh", _linear(writer, x, f"{name}/hidden1", widths[0], widths[1], 1.0))


def _linear(
    writer: GraphWriter,
    x: str,
    name: str,
    given: int,
    made_size: int,
    gain: float,
    *,
    bias: bool = True,
    made: str | None = None,
) -> str:
    weight = writer.parameter(f"{name}.weight", (given, made_size), std=gain * given**-0.5)
    if not bias:
        return writer.node("MatMul", x, weight, name=made)
    offset = writer.parameter(f"{name}.bias", [made_size], std=0.1 * gain)
    return writer.node("Add", writer.node("MatMul", x, weight), offset, name=made)
