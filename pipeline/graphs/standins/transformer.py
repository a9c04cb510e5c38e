"""Stand-ins of a speech encoder (HuBERT base's structure) and of a motion denoiser, with seeded weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from onnx import ModelProto, TensorProto

from .weights import LINEAR, SeededWeights, WeightSource
from .writer import GraphWriter

SAMPLES = 64080
"""Of a window: 100 frames of 640 at 16 kHz, and 40 reflected ones on each side."""
FRAMES, PREVIOUS = 100, 10
STRIDES = ((10, 5), (3, 2), (3, 2), (3, 2), (3, 2), (2, 2), (2, 2))
"""Kernel and step of each convolution over the samples."""
POSITION_KERNEL, POSITION_GROUPS = 128, 16
EPSILON = 1e-5
# Standard deviation of Gelu(x) for normal x, inverted; what a residual branch adds to a trunk of deviation 1.
GELU = 1.7
BRANCH = 0.5
STEPS = 50


@dataclass(frozen=True, kw_only=True)
class TransformerSpec:
    """Widths and depths; the defaults are those of the published networks."""

    convolution_channels: int = 512
    width: int = 768
    inner: int = 3072
    """Channels inside a layer's feed-forward part."""
    heads: int = 12
    layers: int = 12
    features: int = 256
    """Channels of `audio_features`."""
    denoiser_width: int = 256
    denoiser_inner: int = 1024
    denoiser_heads: int = 8
    denoiser_layers: int = 8
    motion: int = 73
    """Length of a motion vector."""


BASE = TransformerSpec()
# Wide enough for blocks of 128 weights, and of several of them.
TINY = TransformerSpec(
    convolution_channels=32,
    width=128,
    inner=256,
    heads=4,
    layers=2,
    features=64,
    denoiser_width=128,
    denoiser_inner=256,
    denoiser_heads=4,
    denoiser_layers=2,
    motion=21,
)


def speech_encoder(spec: TransformerSpec, weights: WeightSource = SeededWeights()) -> ModelProto:  # noqa: B008
    """Input `audio_padded` [1, 64080]; output `audio_features` [1, 100, features]; opset 20."""
    writer = GraphWriter(weights)
    layers = _Layers(writer)
    x = writer.node("Unsqueeze", "audio_padded", writer.integers(1))
    given = 1
    for index, (kernel, step) in enumerate(STRIDES):
        name, made = f"speech/conv{index}", spec.convolution_channels
        weight = writer.parameter(f"{name}.weight", (made, given, kernel), std=GELU * (given * kernel) ** -0.5)
        x = writer.node("Conv", x, weight, name=name, kernel_shape=[kernel], strides=[step])
        if not index:  # a group norm with a group a channel
            scale = writer.parameter(f"{name}/norm.scale", [made], std=0.05, mean=1.0)
            bias = writer.parameter(f"{name}/norm.bias", [made], std=0.05)
            x = writer.node("InstanceNormalization", x, scale, bias, epsilon=EPSILON)
        x, given = writer.node("Gelu", x), made
    # 50 frames a second become the film's 25.
    target = writer.integers(1, given, FRAMES)
    x = writer.node(
        "Resize", x, "", "", target, mode="linear", coordinate_transformation_mode="align_corners", name="speech/resize"
    )
    x = layers.norm(writer.node("Transpose", x, perm=[0, 2, 1]), "speech/projection", given)
    x = layers.linear(x, "speech/projection", given, spec.width)
    x = layers.norm(writer.node("Add", x, _position(writer, x, spec.width)), "speech/position", spec.width)
    for index in range(spec.layers):
        name = f"speech/layer{index}"
        added = layers.attention(x, x, f"{name}/attention", spec.width, spec.heads, (1, FRAMES, FRAMES))
        x = layers.norm(writer.node("Add", x, added), f"{name}/attention", spec.width)
        added = layers.feed_forward(x, name, spec.width, spec.inner)
        x = layers.norm(writer.node("Add", x, added), f"{name}/inner", spec.width)
    layers.linear(x, "speech/features", spec.width, spec.features, made="audio_features")
    return writer.model(
        "speech_encoder", {"audio_padded": (1, SAMPLES)}, {"audio_features": (1, FRAMES, spec.features)}
    )


def denoiser(spec: TransformerSpec, weights: WeightSource = SeededWeights()) -> ModelProto:  # noqa: B008
    """Inputs as of the published denoiser (`step` int64 [2]); output `motion_prediction` [2, 110, motion]; opset 20.

    The mask of the cross attention is diagonal, as published.
    """
    writer = GraphWriter(weights)
    layers = _Layers(writer)
    width, total = spec.denoiser_width, PREVIOUS + FRAMES
    motion = writer.node("Concat", "previous_motion", "motion", axis=1)
    audio = writer.node("Concat", "previous_audio", "audio", axis=1)
    step = writer.node("Mul", writer.node("Cast", "step", to=TensorProto.FLOAT), writer.scalar(1 / STEPS))
    step = writer.node("Reshape", step, writer.integers(2, 1, 1))
    step = layers.linear(step, "denoiser/step0", 1, width)
    step = layers.linear(writer.node("Gelu", step), "denoiser/step1", width, width)
    position = writer.parameter("denoiser/position", (1, total, width), std=0.3)
    x = writer.node("Add", layers.linear(motion, "denoiser/motion", spec.motion, width), position)
    x = layers.norm(writer.node("Add", x, step), "denoiser/given", width)
    memory = layers.norm(layers.linear(audio, "denoiser/audio", spec.features, width), "denoiser/memory", width)
    diagonal = writer.constant(np.where(np.eye(total, dtype=bool), 0, -1e9).astype(np.float32))
    shape = (2, total, total)
    for index in range(spec.denoiser_layers):
        name = f"denoiser/layer{index}"
        added = layers.attention(x, x, f"{name}/self", width, spec.denoiser_heads, shape)
        x = layers.norm(writer.node("Add", x, added), f"{name}/self", width)
        added = layers.attention(x, memory, f"{name}/cross", width, spec.denoiser_heads, shape, mask=diagonal)
        x = layers.norm(writer.node("Add", x, added), f"{name}/cross", width)
        added = layers.feed_forward(x, name, width, spec.denoiser_inner)
        x = layers.norm(writer.node("Add", x, added), f"{name}/inner", width)
    layers.linear(x, "denoiser/prediction", width, spec.motion, made="motion_prediction")
    inputs = {
        "motion": (2, FRAMES, spec.motion),
        "audio": (2, FRAMES, spec.features),
        "previous_motion": (2, PREVIOUS, spec.motion),
        "previous_audio": (2, PREVIOUS, spec.features),
        "step": (2,),
    }
    model = writer.model("denoiser", inputs, {"motion_prediction": (2, total, spec.motion)})
    model.graph.input[-1].type.tensor_type.elem_type = TensorProto.INT64
    return model


def _position(writer: GraphWriter, x: str, width: int) -> str:
    """The convolution whose output tells each frame its place; an even kernel gives one frame too many."""
    shape = (width, width // POSITION_GROUPS, POSITION_KERNEL)
    weight = writer.parameter("speech/position.weight", shape, std=BRANCH * (shape[1] * shape[2]) ** -0.5)
    half = POSITION_KERNEL // 2
    x = writer.node("Transpose", x, perm=[0, 2, 1])
    x = writer.node(
        "Conv", x, weight, name="speech/position", group=POSITION_GROUPS, kernel_shape=[2 * half], pads=[half, half]
    )
    x = writer.node("Slice", x, writer.integers(0), writer.integers(FRAMES), writer.integers(2))
    return writer.node("Transpose", writer.node("Gelu", x), perm=[0, 2, 1])


class _Layers:
    """What transformers are made of."""

    def __init__(self, writer: GraphWriter) -> None:
        self.writer = writer

    def linear(
        self, x: str, name: str, given: int, width: int, *, gain: float = LINEAR, made: str | None = None
    ) -> str:
        """[..., given] -> [..., width]."""
        weight = self.writer.parameter(f"{name}.weight", (given, width), std=gain * given**-0.5)
        bias = self.writer.parameter(f"{name}.bias", [width], std=0.1 * gain)
        return self.writer.node("Add", self.writer.node("MatMul", x, weight, name=f"{name}/product"), bias, name=made)

    def norm(self, x: str, name: str, width: int) -> str:
        scale = self.writer.parameter(f"{name}/norm.scale", [width], std=0.05, mean=1.0)
        bias = self.writer.parameter(f"{name}/norm.bias", [width], std=0.05)
        return self.writer.node("LayerNormalization", x, scale, bias, axis=-1, epsilon=EPSILON)

    def feed_forward(self, x: str, name: str, width: int, inner: int) -> str:
        x = self.writer.node("Gelu", self.linear(x, f"{name}/inner0", width, inner))
        return self.linear(x, f"{name}/inner1", inner, width, gain=BRANCH * GELU)

    def attention(
        self, x: str, memory: str, name: str, width: int, heads: int, shape: Sequence[int], *, mask: str | None = None
    ) -> str:
        """Of `x` [batch, rows, width] to `memory` [batch, columns, width]; `shape` = (batch, rows, columns)."""
        writer = self.writer
        batch, rows, columns = shape
        size = width // heads

        def split(value: str, part: str, length: int, order: Sequence[int]) -> str:
            value = self.linear(value, f"{name}/{part}", width, width)
            value = writer.node("Reshape", value, writer.integers(batch, length, heads, size))
            return writer.node("Transpose", value, perm=list(order))

        query = split(x, "query", rows, (0, 2, 1, 3))
        key = split(memory, "key", columns, (0, 2, 3, 1))
        value = split(memory, "value", columns, (0, 2, 1, 3))
        scores = writer.node("Mul", writer.node("MatMul", query, key), writer.scalar(size**-0.5))
        if mask is not None:
            scores = writer.node("Add", scores, mask)
        mixed = writer.node("MatMul", writer.node("Softmax", scores, axis=-1), value)
        mixed = writer.node("Transpose", mixed, perm=[0, 2, 1, 3])
        mixed = writer.node("Reshape", mixed, writer.integers(batch, rows, width))
        return self.linear(mixed, f"{name}/output", width, width, gain=BRANCH)
