"""The warping half: where each point of the feature volume moves, and the volume moved there."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .hourglass import hourglass
from .spec import Spec
from .weights import LEAKY_RELU_001, LINEAR, RELU
from .writer import GraphWriter

# Variance of the heat map of a keypoint, in squared units of the grid.
HEAT_MAP_VARIANCE = 0.01
# Spread of the mask's logits: a few of the motions share each point, none has it alone.
MASK_GAIN = 2.2 * RELU


def identity_grid(spec: Spec) -> NDArray[np.float32]:
    """[1, 1, D, H, W, 3] float32 in -1..1: (x, y, z) of every point, 2i / (n - 1) - 1 along each axis."""
    axes = [2 * np.arange(size) / (size - 1) - 1 for size in spec.volume]
    z, y, x = np.meshgrid(*axes, indexing="ij")
    return np.stack([x, y, z], -1).astype(np.float32)[None, None]


def warping(writer: GraphWriter, spec: Spec, feature: str, kp_driving: str, kp_source: str, name: str) -> str:
    """Add the half to `writer`.

    Args:
        feature: [1, C, D, H, W].
        kp_driving: [1, K, 3], as `kp_source`.
        name: of the output.

    Returns:
        [1, warped_channels, H, W].
    """
    motion, grids = _candidates(writer, spec, feature, kp_driving, kp_source)
    channels = (spec.keypoints + 1) * (1 + spec.compressed_channels)
    prediction = hourglass(writer, motion, channels, spec.hourglass_channels)
    grid, occlusion = _deformation(writer, spec, prediction, channels + spec.hourglass_channels, grids)
    moved = writer.node(
        "GridSample", feature, grid, align_corners=0, mode="linear", padding_mode="zeros", name="warping/moved"
    )
    flat = spec.feature_channels * spec.depth
    x = writer.node("Reshape", moved, writer.integers(1, flat, spec.size, spec.size), allowzero=1)
    x = writer.conv(x, "warping/third", (flat, spec.warped_channels), (3, 3), gain=LINEAR)
    x = writer.node("LeakyRelu", x, alpha=0.01)
    x = writer.conv(x, "warping/fourth", (spec.warped_channels,) * 2, (1, 1), gain=LEAKY_RELU_001)
    return writer.node("Mul", x, occlusion, name=name)


def _candidates(writer: GraphWriter, spec: Spec, feature: str, driving: str, source: str) -> tuple[str, str]:
    """Features moved as each keypoint moves, beside its heat maps' difference; and the K + 1 grids themselves.

    Returns:
        [1, (K + 1) (1 + compressed_channels), D, H, W] and [1, K + 1, 3, D, H, W].
    """
    motions, volume = spec.keypoints + 1, spec.volume
    grid = identity_grid(spec)
    identity = writer.constant(grid)
    repeated = writer.constant(np.repeat(grid, spec.keypoints, 1))
    points = writer.integers(1, spec.keypoints, 1, 1, 1, 3)

    channels = (spec.feature_channels, spec.compressed_channels)
    compressed = writer.conv(feature, "warping/compress", channels, (1, 1, 1), gain=LINEAR)
    driving = writer.node("Reshape", driving, points, allowzero=1)
    source = writer.node("Reshape", source, points, allowzero=1)
    compressed = writer.node("Relu", compressed)
    shifted = writer.node("Sub", identity, driving)
    from_driving = writer.node("Sub", repeated, driving)
    from_source = writer.node("Sub", repeated, source)
    compressed = writer.node("Unsqueeze", compressed, writer.integers(1, 2))
    shifted = writer.node("Add", shifted, source)
    squares = [writer.node("Pow", offset, writer.scalar(2.0)) for offset in (from_driving, from_source)]
    grids = writer.node("Concat", identity, shifted, axis=1)
    distances = [
        writer.node("ReduceSum", square, writer.integers(-1), noop_with_empty_axes=0, keepdims=0) for square in squares
    ]
    copies = writer.node("Tile", compressed, writer.integers(1, motions, 1, 1, 1, 1, 1))
    sampling = writer.node("Reshape", grids, writer.integers(motions, *volume, -1), allowzero=1)
    grids = writer.node("Transpose", grids, perm=[0, 1, 5, 2, 3, 4])
    halves = [writer.node("Mul", distance, writer.scalar(-0.5)) for distance in distances]
    copies = writer.node("Reshape", copies, writer.integers(motions, -1, *volume), allowzero=1)
    exponents = [writer.node("Div", half, writer.scalar(HEAT_MAP_VARIANCE)) for half in halves]
    moved = writer.node("GridSample", copies, sampling, align_corners=0, mode="linear", padding_mode="zeros")
    heat_maps = [writer.node("Exp", exponent) for exponent in exponents]
    moved = writer.node("Reshape", moved, writer.integers(1, motions, -1, *volume), allowzero=1)
    heat = writer.node("Sub", *heat_maps)
    heat = writer.node("Concat", writer.constant(np.zeros((1, 1, *volume), np.float32)), heat, axis=1)
    heat = writer.node("Unsqueeze", heat, writer.integers(2))
    both = writer.node("Concat", heat, moved, axis=2)
    return writer.node("Reshape", both, writer.integers(1, -1, *volume), allowzero=1), grids


def _deformation(writer: GraphWriter, spec: Spec, x: str, channels: int, grids: str) -> tuple[str, str]:
    """The mean of the grids under the predicted mask, [1, D, H, W, 3], and the occlusion, [1, 1, H, W] in 0..1."""
    flat = channels * spec.depth
    kernel = (spec.mask_kernel,) * 3
    mask = writer.conv(x, "warping/mask", (channels, spec.keypoints + 1), kernel, gain=MASK_GAIN)
    x = writer.node("Reshape", x, writer.integers(1, -1, spec.size, spec.size), allowzero=1)
    mask = writer.node("Softmax", mask, axis=1)
    occlusion = writer.conv(x, "warping/occlusion", (flat, 1), (7, 7), gain=RELU, bias=1.0)
    mask = writer.node("Unsqueeze", mask, writer.integers(2))
    occlusion = writer.node("Sigmoid", occlusion)
    weighted = writer.node("Mul", grids, mask)
    mean = writer.node("ReduceSum", weighted, writer.integers(1), noop_with_empty_axes=0, keepdims=0)
    return writer.node("Transpose", mean, perm=[0, 2, 3, 4, 1]), occlusion
