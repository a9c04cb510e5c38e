"""Operators that join or take parts along an axis, on packed tensors: Concat, Split, Slice, Pad, Gather."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from ..model import attribute, constant, static_shape
from .packing import Packed, isolate, repack
from .passes import CannotLowerError
from .rank import Rule, Walk, rank_pass


def concat(walk: Walk, node: ir.Node) -> Sequence[Packed]:
    """Joined along the axis, in the largest input's groups."""
    shape = static_shape(node.outputs[0])
    axis = int(attribute(node, "axis")) % len(shape)
    sources = [walk.get(value) for value in node.inputs]
    largest = isolate(walk.editor, max(sources, key=lambda source: source.size), axis)
    values = [repack(walk.editor, source, largest.groups).value for source in sources]
    value = walk.editor.op("Concat", *values, axis=largest.home(axis))
    return [Packed(value, shape, largest.groups)]


def split(walk: Walk, node: ir.Node) -> Sequence[Packed]:
    """Cut along the axis."""
    source = walk.get(node.inputs[0])
    axis = int(attribute(node, "axis", 0)) % len(source.shape)
    source = isolate(walk.editor, source, axis)
    shapes = [static_shape(value) for value in node.outputs]
    sizes = walk.editor.const([shape[axis] for shape in shapes])
    values = walk.editor.ops("Split", len(shapes), source.value, sizes, axis=source.home(axis))
    return [Packed(value, shape, source.groups) for value, shape in zip(values, shapes, strict=True)]


def slices(walk: Walk, node: ir.Node) -> Sequence[Packed]:
    """Parts of axes, one axis after another."""
    packed = walk.get(node.inputs[0])
    starts, ends, axes, steps = (*map(_constant, node.inputs[1:]), None, None)[:4]
    if starts is None or ends is None:
        raise CannotLowerError("its bounds are not constant")
    axes = axes if axes is not None else np.arange(len(starts))
    steps = steps if steps is not None else np.ones(len(starts), np.int64)
    for axis, start, end, step in zip(*(part.tolist() for part in (axes, starts, ends, steps)), strict=True):
        axis %= len(packed.shape)
        count = len(range(*slice(start, None if end < -packed.shape[axis] and step < 0 else end, step).indices(
            packed.shape[axis])))  # fmt: skip
        if count == packed.shape[axis] and step > 0:
            continue
        packed = isolate(walk.editor, packed, axis)
        value = walk.editor.slice(packed.value, packed.home(axis), start, end, step)
        packed = Packed(value, (*packed.shape[:axis], count, *packed.shape[axis + 1 :]), packed.groups)
    return [packed]


def pad(walk: Walk, node: ir.Node) -> Sequence[Packed]:
    """Axes padded; at once where each is alone, else one after another (all modes are separable)."""
    packed = walk.get(node.inputs[0])
    pads, axes = constant(node.inputs[1]), _constant(node.inputs[3] if len(node.inputs) > 3 else None)
    if pads is None:
        raise CannotLowerError("its widths are not constant")
    named = [int(axis) % len(packed.shape) for axis in (axes if axes is not None else range(len(packed.shape)))]
    widths = dict(zip(named, pads.reshape(2, -1).T.tolist(), strict=True))
    widths = {axis: pair for axis, pair in widths.items() if any(pair)}
    fill = node.inputs[2] if len(node.inputs) > 2 else None
    mode = str(attribute(node, "mode", "constant"))
    if all(packed.alone(axis) for axis in widths):
        return [_padded(walk, packed, widths, fill, mode)]
    for axis, pair in widths.items():
        packed = _padded(walk, isolate(walk.editor, packed, axis), {axis: pair}, fill, mode)
    return [packed]


def _padded(walk: Walk, packed: Packed, widths: dict[int, list[int]], fill: ir.Value | None, mode: str) -> Packed:
    if not widths:
        return packed
    physical = np.zeros((2, len(packed.groups)), np.int64)
    shape = list(packed.shape)
    for axis, (before, after) in widths.items():
        physical[:, packed.home(axis)] = before, after
        shape[axis] += before + after
    value = walk.editor.op("Pad", packed.value, walk.editor.const(physical.reshape(-1)), fill, mode=mode)
    return Packed(value, tuple(shape), packed.groups)


def gather(walk: Walk, node: ir.Node) -> Sequence[Packed]:
    """Entries of one axis; the indices' axes take its place."""
    source = walk.get(node.inputs[0])
    indices = walk.get(node.inputs[1])
    axis = int(attribute(node, "axis", 0)) % len(source.shape)
    source = isolate(walk.editor, source, axis)
    flat = walk.editor.reshape(walk.unpacked(indices), [math.prod(indices.shape)])
    value = walk.editor.op("Gather", source.value, flat, axis=source.home(axis))
    count = len(indices.shape)

    def renamed(old: int) -> tuple[int, ...]:
        if old == axis:
            return tuple(range(axis, axis + count))
        return (old if old < axis else old + count - 1,)

    groups = tuple(tuple(new for old in group for new in renamed(old)) for group in source.groups)
    return [Packed(value, static_shape(node.outputs[0]), groups)]


def _constant(value: ir.Value | None) -> np.ndarray | None:
    known = constant(value)
    if value is not None and known is None:
        raise CannotLowerError(f"{value.name} is not constant")
    return known


RULES: dict[str, Rule] = {"Concat": concat, "Split": split, "Slice": slices, "Pad": pad, "Gather": gather}

PASS = rank_pass("parts-rank", "concatenation, splitting, slicing, padding and gathering above rank 4", RULES)
