"""Samples of the crop at pixel positions, as graph expressions."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from .windows import SIZE, Window
from .writer import Graph, Value


def dense(side: int) -> int:
    """Length of a texture's side with a value at every pixel and half way between any two.

    Linear samples of it are as sharp as cubic ones of the picture and take a fraction of the time, in every frame.
    """
    return 2 * side - 1


def densified(image: Value, count: int, channels: int, height: int, width: int) -> Value:
    """[count, channels, dense(height), dense(width)] of an image [count, channels, height, width].

    Its outermost values stand at the centres of the outermost pixels, not half a step further out.
    """
    shape = np.array([count, channels, dense(height), dense(width)])
    return image.graph.op("Resize", image, "", "", shape, mode="cubic", coordinate_transformation_mode="align_corners")


def sample(g: Graph, image: Value, x: Value, y: Value) -> Value:
    """[1, 3, h, w] linear samples of the crop at pixels x, y [h, w]."""
    grid = g.op("Concat", x.unsqueeze(2), y.unsqueeze(2), axis=2)
    grid = ((grid + 0.5) * (2 / SIZE) - 1).unsqueeze(0)
    return g.op("GridSample", image, grid, mode="linear", padding_mode="border", align_corners=0)


def sample_dense(texture: Value, where: Value, window: Window, shrink: int) -> Value:
    """Samples of a densified image of a window at places in its units; for frames smaller by `shrink`, of its mean."""
    if shrink == 1:
        return linear(texture, where, min(dense(window.height), dense(window.width)))
    pooled = pool(texture[:, :, ::2, ::2], shrink)
    return texture.graph.op("GridSample", pooled, where, mode="cubic", padding_mode="border", align_corners=0)


def dense_scale(window: Window, shrink: int) -> npt.NDArray[np.float32]:
    """[2] by which places in a window's units must be multiplied for `sample_dense`."""
    sides = np.array([window.width, window.height], np.float32)
    return 2 * sides / (2 * sides - 1) if shrink == 1 else np.ones(2, np.float32)


def pool(layer: Value, shrink: int) -> Value:
    """A layer for frames smaller by `shrink`."""
    if shrink == 1:
        return layer
    return layer.graph.op("AveragePool", layer, kernel_shape=[shrink, shrink], strides=[shrink, shrink])


def highest(image: Value, side: int) -> Value:
    """The highest value in a square of `side` (odd) pixels about each one."""
    return image.graph.op("MaxPool", image, kernel_shape=[side, side], strides=[1, 1], pads=[side // 2] * 4)


def linear(layer: Value, where: Value, side: int) -> Value:
    """Linear samples of a layer at places in window units, carried on beyond its border.

    Places are held inside, so that the padding never shows: with zeros ONNX Runtime takes half the time on a CPU.
    `side`: the layer's shorter one.
    """
    limit = 1 - 1 / side
    where = where.clip(-limit, limit)
    return layer.graph.op("GridSample", layer, where, mode="linear", padding_mode="zeros", align_corners=0)
