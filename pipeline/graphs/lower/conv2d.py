"""A 2-D convolution as the passes for the CPU see it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx_ir as ir

from ..model import attribute, constant, describe
from ..shapes import known_shape
from .editing import Editor
from .passes import CannotLowerError
from .volumes import Window, window


@dataclass(frozen=True)
class Conv2d:
    """One float32 Conv of pictures [N, C, H, W] with constant weights."""

    node: ir.Node
    value: ir.Value
    weight: np.ndarray
    """[O, C / groups, kH, kW]."""
    bias: np.ndarray | None
    """[O]."""
    window: Window
    groups: int
    shape: tuple[int, ...]
    """Of the input, [N, C, H, W]."""
    out_shape: tuple[int, ...]
    """[N, O, H', W']."""

    @property
    def kernel(self) -> tuple[int, int]:
        """(kH, kW)."""
        return int(self.weight.shape[2]), int(self.weight.shape[3])

    @property
    def plain(self) -> bool:
        """Whether it steps by one, has no holes and no groups."""
        return self.groups == 1 and {*self.window.strides, *self.window.dilations} == {1}

    @property
    def multiplications(self) -> int:
        """Multiplications of the direct form."""
        return int(np.prod(self.out_shape)) * int(np.prod(self.weight.shape[1:]))


def conv2d(node: ir.Node) -> Conv2d:
    """Read a Conv node.

    Raises:
        CannotLowerError: it is not over pictures, its weights are not constant or not float32, or its padding
            is negative or of an unknown kind.
    """
    value = node.inputs[0]
    weight = constant(node.inputs[1])
    biased = len(node.inputs) > 2 and node.inputs[2] is not None
    bias = constant(node.inputs[2]) if biased else None
    shape, out_shape = (known_shape(value) if value is not None else None), known_shape(node.outputs[0])
    if value is None or shape is None or out_shape is None:
        raise CannotLowerError("its shapes are not known")
    if len(shape) != 4:
        raise CannotLowerError(f"rank {len(shape)} instead of 4")
    if weight is None or (biased and bias is None):
        raise CannotLowerError("its weights are not constant")
    if weight.dtype != np.float32:
        raise CannotLowerError(f"{weight.dtype} instead of float32")
    sliding = window(node, weight.shape[2:], shape[2:])
    if min(*sliding.before, *sliding.after) < 0:
        raise CannotLowerError("negative padding")
    return Conv2d(node, value, weight, bias, sliding, int(attribute(node, "group", 1)), shape, out_shape)


def convolutions(model: ir.Model, left: dict[str, str]) -> list[Conv2d]:
    """Every convolution of a graph that `conv2d` can read, in order; the others go to `left` with the reason."""
    found = []
    for node in model.graph:
        if node.op_type != "Conv" or node.domain:
            continue
        try:
            found.append(conv2d(node))
        except CannotLowerError as error:
            left[describe(node)] = str(error)
    return found


def conv_op(
    editor: Editor, value: ir.Value, weight: np.ndarray, bias: np.ndarray | None = None, **attributes: Any
) -> ir.Value:
    """A Conv with constant weights."""
    inputs = [value, editor.const(np.ascontiguousarray(weight))]
    inputs += [] if bias is None else [editor.const(bias)]
    return editor.op("Conv", *inputs, kernel_shape=list(weight.shape[2:]), **attributes)


def add_bias(editor: Editor, value: ir.Value, bias: np.ndarray | None) -> ir.Value:
    """[N, O, H, W] plus a number for each channel."""
    return value if bias is None else editor.op("Add", value, editor.const(bias.reshape(-1, 1, 1)))
