"""A stand-in of the appearance feature extractor: the published structure with seeded weights."""

from __future__ import annotations

from onnx import ModelProto

from .spec import Spec
from .weights import LINEAR, RELU, SeededWeights, WeightSource
from .writer import GraphWriter

BLOCKS = 6
VOLUME_KERNEL = (3, 3, 3)
# What a residual branch adds to a trunk of standard deviation 1.
BRANCH = 0.3 * RELU


def appearance(spec: Spec, weights: WeightSource = SeededWeights()) -> ModelProto:  # noqa: B008 - immutable
    """46 nodes, opset 20: input `img` [1, 3, 4 size, 4 size] in 0..1; output `feature_3d` [1, C, D, size, size]."""
    writer = GraphWriter(weights)
    x = _encode(writer, spec, "img")
    width = spec.feature_channels
    for block in range(BLOCKS):
        name = f"appearance/block{block}"
        inner = _normalise_relu(writer, x, f"{name}/norm0", width)
        inner = writer.conv(inner, f"{name}/conv0", (width, width), VOLUME_KERNEL, gain=RELU)
        inner = writer.node("Relu", inner)
        inner = writer.conv(inner, f"{name}/conv1", (width, width), VOLUME_KERNEL, gain=BRANCH)
        x = writer.node("Add", inner, x, name="feature_3d" if block == BLOCKS - 1 else None)
    side = spec.portrait_size
    return writer.model("appearance", {"img": (1, 3, side, side)}, {x: (1, width, *spec.volume)})


def _encode(writer: GraphWriter, spec: Spec, image: str) -> str:
    """The 2-D convolutions, their channels cut into depth slices: [1, C, D, size, size]."""
    first, second, third = spec.encoder_channels
    flat = spec.feature_channels * spec.depth
    # The image's mean is far from zero and its spread small: the first gain makes up for it.
    x = writer.conv(image, "appearance/first", (3, first), (3, 3), gain=3 * LINEAR)
    x = writer.node("Relu", x)
    for level, channels in enumerate([(first, second), (second, third)]):
        x = writer.conv(x, f"appearance/down{level}", channels, (3, 3), gain=1.2 * RELU)
        x = writer.average_pool(writer.node("Relu", x), (2, 2))
    x = writer.conv(x, "appearance/volume", (third, flat), (1, 1), gain=1.2 * RELU)
    return writer.node("Reshape", x, writer.integers(1, spec.feature_channels, *spec.volume), allowzero=0)


def _normalise_relu(writer: GraphWriter, x: str, name: str, channels: int) -> str:
    scale = writer.parameter(f"{name}.scale", [channels], std=0.1, mean=1.0)
    bias = writer.parameter(f"{name}.bias", [channels], std=0.1)
    mean = writer.parameter(f"{name}.mean", [channels], std=0.1)
    variance = writer.parameter(f"{name}.variance", [channels], std=0.05, mean=1.0)
    x = writer.node("BatchNormalization", x, scale, bias, mean, variance, epsilon=1e-5, momentum=0.9, training_mode=0)
    return writer.node("Relu", x)
