"""3-D convolution as 2-D convolutions of slices.

out[n, o, z, y, x] = b[o] + sum over taps t, channels c and the window in H, W of w[o, c, t] * in[n, c, z·s + t·d - p].
Depth becomes the batch axis. The taps in depth become either input channels (shifted copies stacked, one
convolution sums them) or output channels (one convolution gives every tap's share, shifted sums follow);
both are exact, and which is chosen is a matter of what has to be moved.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from ..model import attribute, constant, static_shape
from .editing import Editor
from .packing import Packed
from .passes import CannotLowerError, Pass
from .rank import Walk, rank_pass
from .volumes import DEPTH_ALONE, DEPTH_BATCH, Window, volume, window


@dataclass(frozen=True)
class Conv3d:
    """One 3-D convolution of slices `value` [N·D, C, H, W]."""

    value: ir.Value
    batch: int
    depth: int
    weight: np.ndarray
    """[O, C / groups, kD, kH, kW]."""
    bias: np.ndarray | None
    """[O]."""
    window: Window
    groups: int
    shape: tuple[int, ...]
    """Of the output, [N, O, D', H', W']."""


Form = Callable[[Editor, Conv3d], "ir.Value | None"]
"""Makes the output's slices [N·D', O, H', W'], or None where it does not apply or does not pay."""


def taps_as_inputs(editor: Editor, conv: Conv3d) -> ir.Value:
    """Shifted copies stacked on the input channels."""
    batch, channels = conv.batch, static_shape(conv.value)[1]
    depth, area = conv.shape[2], static_shape(conv.value)[2:]
    volume = editor.reshape(conv.value, [batch, conv.depth, channels, area[0] * area[1]])
    volume = pad_depth(editor, volume, conv.window.before[0], conv.window.after[0])
    each = channels // conv.groups
    copies = []
    for group in range(conv.groups):
        part = editor.slice(volume, 2, group * each, (group + 1) * each) if conv.groups > 1 else volume
        copies += [_shifted(editor, part, tap, conv.window, depth) for tap in range(conv.window.kernel[0])]
    stacked = editor.op("Concat", *copies, axis=2)
    stacked = editor.reshape(stacked, [batch * depth, channels * conv.window.kernel[0], *area])
    out, per_group, taps, height, width = conv.weight.shape
    weight = conv.weight.transpose(0, 2, 1, 3, 4).reshape(out, taps * per_group, height, width)
    return _conv2d(editor, stacked, weight, conv.bias, conv)


def taps_as_outputs(editor: Editor, conv: Conv3d) -> ir.Value:
    """Every tap's share as output channels, then a sum of shifted parts."""
    out, per_group, taps, height, width = conv.weight.shape
    each = out // conv.groups
    weight = conv.weight.reshape(conv.groups, each, per_group, taps, height, width)
    weight = weight.transpose(3, 0, 1, 2, 4, 5) if conv.groups == 1 else weight.transpose(0, 3, 1, 2, 4, 5)
    shares = _conv2d(editor, conv.value, weight.reshape(-1, per_group, height, width), None, conv)
    _, _, new_height, new_width = static_shape(shares)
    depth, area = conv.shape[2], new_height * new_width
    shares = editor.reshape(shares, [conv.batch, conv.depth, conv.groups * taps * each, area])
    shares = pad_depth(editor, shares, conv.window.before[0], conv.window.after[0])
    parts: list[ir.Value] = []
    for tap in range(taps):
        moved = _shifted(editor, shares, tap, conv.window, depth)
        starts = [(group * taps + tap) * each for group in range(conv.groups)]
        cut = [editor.slice(moved, 2, start, start + each) for start in starts]
        parts.append(cut[0] if len(cut) == 1 else editor.op("Concat", *cut, axis=2))
    # Not Sum: WebGPU has none.
    total = functools.reduce(lambda left, right: editor.op("Add", left, right), parts)
    if conv.bias is not None:
        total = editor.op("Add", total, editor.const(conv.bias.reshape(1, 1, out, 1)))
    return editor.reshape(total, [conv.batch * depth, out, new_height, new_width])


def by_cost(editor: Editor, conv: Conv3d) -> ir.Value:
    """The form that moves fewer elements: kD·C stacked inputs against kD·O shares, each written and read once."""
    channels = static_shape(conv.value)[1]
    return (taps_as_inputs if channels <= conv.weight.shape[0] else taps_as_outputs)(editor, conv)


def pad_depth(editor: Editor, volume: ir.Value, before: int, after: int) -> ir.Value:
    """[N, D, C, A] with empty slices in front and behind."""
    if not before and not after:
        return volume
    return editor.op("Pad", volume, editor.const([0, before, 0, 0, 0, after, 0, 0]))


def _shifted(editor: Editor, volume: ir.Value, tap: int, window: Window, depth: int) -> ir.Value:
    start, stride = tap * window.dilations[0], window.strides[0]
    stop = start + (depth - 1) * stride + 1
    if (start, stride, depth) == (0, 1, static_shape(volume)[1]):
        return volume
    return editor.slice(volume, 1, start, stop, stride)


def _conv2d(editor: Editor, value: ir.Value, weight: np.ndarray, bias: np.ndarray | None, conv: Conv3d) -> ir.Value:
    inputs = [value, editor.const(np.ascontiguousarray(weight))]
    inputs += [] if bias is None else [editor.const(bias)]
    return editor.op("Conv", *inputs, group=conv.groups, **conv.window.flat())


def rule(forms: Sequence[Form]) -> Callable[[Walk, ir.Node], Sequence[Packed]]:
    """The rule that tries the forms in order; the last must always apply."""

    def apply(walk: Walk, node: ir.Node) -> Sequence[Packed]:
        weight, bias = constant(node.inputs[1]), constant(node.inputs[2]) if len(node.inputs) > 2 else None
        source = volume(walk, node.inputs[0])
        if weight is None or (len(node.inputs) > 2 and node.inputs[2] is not None and bias is None):
            raise CannotLowerError("its weights are not constant")
        shape = static_shape(node.outputs[0])
        sliding = window(node, weight.shape[2:], source.shape[2:])
        slices = walk.packed(source, DEPTH_BATCH).value
        groups = int(attribute(node, "group", 1))
        conv = Conv3d(slices, source.shape[0], source.shape[2], weight, bias, sliding, groups, shape)
        for form in forms:
            value = form(walk.editor, conv)
            if value is not None:
                return [Packed(value, shape, DEPTH_BATCH)]
        raise CannotLowerError("no form applies")

    return apply


def conv3d_pass(*forms: Form) -> Pass:
    """3-D convolutions as 2-D ones, by the first form that applies."""
    return rank_pass("conv3d", "3-D convolutions as 2-D convolutions of slices", {"Conv": rule(forms)})


PASS = conv3d_pass(by_cost)

__all__ = ["DEPTH_ALONE", "PASS", "Conv3d", "Form", "by_cost", "conv3d_pass", "pad_depth", "rule", "taps_as_inputs",
           "taps_as_outputs"]  # fmt: skip
