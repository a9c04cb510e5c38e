"""What a volumetric GridSample means: its sizes, and where on the input's axes a coordinate lies."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from ..model import attribute
from ..shapes import known_shape
from .editing import Editor
from .passes import CannotLowerError


@dataclass(frozen=True)
class Sampling:
    """A linear GridSample of a volume, zeros outside.

    `volume` is [N, C, D, H, W], `grid` [N, Do, Ho, Wo, 3] with x, y, z last; both float32.
    """

    volume: ir.Value
    grid: ir.Value
    batch: int
    channels: int
    size: tuple[int, int, int]
    """D, H, W."""
    out: tuple[int, int, int]
    """Do, Ho, Wo."""
    align_corners: bool

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the result: [N, C, Do, Ho, Wo]."""
        return (self.batch, self.channels, *self.out)

    @property
    def points(self) -> int:
        """Places sampled for each batch element."""
        return self.out[0] * self.out[1] * self.out[2]


def is_volumetric(node: ir.Node) -> bool:
    """Whether a node is a GridSample that is not known to be of images."""
    if node.op_type != "GridSample" or node.domain:
        return False
    return not any(value is not None and value.shape is not None and len(value.shape) == 4 for value in node.inputs)


def read_sampling(node: ir.Node, opset: int) -> Sampling:
    """The sampling that a volumetric GridSample does.

    Raises:
        CannotLowerError: another mode, padding or type, or shapes that are not known or do not fit.
    """
    volume, grid = node.inputs
    if volume is None or grid is None:
        raise CannotLowerError("an input is absent")
    linear = linear_mode(opset)
    mode = attribute(node, "mode", linear)
    if mode != linear:
        raise CannotLowerError(f"mode {mode!r} (only {linear!r} in this operator set)")
    padding = attribute(node, "padding_mode", "zeros")
    if padding != "zeros":
        raise CannotLowerError(f"padding {padding!r} (only 'zeros')")
    if volume.dtype != ir.DataType.FLOAT or grid.dtype != ir.DataType.FLOAT:
        raise CannotLowerError(f"types {volume.dtype} and {grid.dtype} (only float32)")
    shape, places = known_shape(volume), known_shape(grid)
    if shape is None or places is None:
        raise CannotLowerError("a shape is not known")
    if len(shape) != 5 or len(places) != 5 or places[0] != shape[0] or places[-1] != 3 or 0 in (*shape, *places):
        raise CannotLowerError(f"shapes {shape} and {places} are not a volume and its grid")
    align = bool(attribute(node, "align_corners", 0))
    return Sampling(volume, grid, shape[0], shape[1], shape[2:], places[1:4], align)


def linear_mode(opset: int) -> str:
    """What the operator sets call linear interpolation: renamed at 20."""
    return "linear" if opset >= 20 else "bilinear"


def index_of(editor: Editor, coordinate: ir.Value, length: int, *, align_corners: bool) -> ir.Value:
    """Where on an axis of `length` elements a coordinate lies, from 0 for the first element's centre.

    In the order of the operator's definition, as float32 differs by it: ((x + 1) n - 1) / 2, or
    (x + 1) / 2 (n - 1) with align_corners.
    """

    def scalar(number: float) -> ir.Value:
        return editor.const(np.float32(number))

    shifted = editor.op("Add", coordinate, scalar(1))
    if align_corners:
        return editor.op("Mul", editor.op("Mul", shifted, scalar(0.5)), scalar(length - 1))
    doubled = editor.op("Sub", editor.op("Mul", shifted, scalar(length)), scalar(1))
    return editor.op("Mul", doubled, scalar(0.5))


def tent(editor: Editor, index: ir.Value, places: ir.Value) -> ir.Value:
    """Linear interpolation's weights max(0, 1 - |index - place|), broadcast; 0 wherever the index is out of range."""
    distance = editor.op("Abs", editor.op("Sub", index, places))
    return editor.op("Relu", editor.op("Sub", editor.const(np.float32(1)), distance))
