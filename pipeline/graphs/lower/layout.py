"""Operators that only move or rename axes, on packed tensors: most of them become nothing."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from ..model import attribute, constant, static_shape
from .elementwise import expand as expand_packed
from .packing import Groups, Packed, isolate, repack
from .passes import CannotLowerError
from .rank import Rule, Walk, rank_pass


def transpose(walk: Walk, node: ir.Node) -> Sequence[Packed]:
    """Other names for the same axes."""
    source = walk.get(node.inputs[0])
    default = list(range(len(source.shape)))[::-1]
    perm = [int(axis) for axis in attribute(node, "perm", default)]
    renamed = {old: new for new, old in enumerate(perm)}
    groups = tuple(tuple(renamed[axis] for axis in group) for group in source.groups)
    return [Packed(source.value, tuple(source.shape[axis] for axis in perm), groups)]


def reshape(walk: Walk, node: ir.Node) -> Sequence[Packed]:
    """Reshape, Squeeze, Unsqueeze and Flatten: the data stay where they are if the axes' order allows it."""
    return [reshaped(walk, walk.get(node.inputs[0]), static_shape(node.outputs[0]))]


def reshaped(walk: Walk, source: Packed, shape: tuple[int, ...]) -> Packed:
    """The same elements in row-major order of another shape, without moving more than is needed."""
    blocks = _blocks(source.shape, shape)
    order = list(source.order)
    for old, _ in blocks:  # an old block must be contiguous and in order to become other axes
        if len(old) > 1 and not _contiguous(order, old):
            place = order.index(old[0])
            rest = [axis for axis in order if axis not in old]
            kept = [axis for axis in order[:place] if axis in rest]
            order = [*kept, *old, *rest[len(kept) :]]
    if order != list(source.order):
        ones = tuple(axis for axis, length in enumerate(source.shape) if length == 1)
        source = repack(walk.editor, source, _few(order, blocks, ones))
    renamed = {old[0]: (old, new) for old, new in blocks}
    after: list[int] = []
    for axis in source.order:
        if axis in renamed:
            after += renamed[axis][1]
    ends = set(np.cumprod([1, *source.lengths]).tolist())
    groups: list[list[int]] = [[]]
    done = 1
    for axis in after:
        if done in ends and groups[-1]:
            groups.append([])
        groups[-1].append(axis)
        done *= shape[axis]
    groups[0] = [axis for axis, length in enumerate(shape) if length == 1] + groups[0]
    packed = tuple(tuple(group) for group in groups)
    value = source.value
    lengths = Packed(value, shape, packed).lengths
    return Packed(walk.editor.reshape(value, lengths), shape, packed)


def _blocks(old: Sequence[int], new: Sequence[int]) -> list[tuple[list[int], list[int]]]:
    """The shortest runs of old and of new axes, longer than 1, with as many elements each."""
    sources = [axis for axis, length in enumerate(old) if length != 1]
    targets = [axis for axis, length in enumerate(new) if length != 1]
    blocks: list[tuple[list[int], list[int]]] = []
    while sources or targets:
        left, right = [sources.pop(0)], [targets.pop(0)]
        a, b = old[left[0]], new[right[0]]
        while a != b:
            if a < b:
                left.append(sources.pop(0))
                a *= old[left[-1]]
            else:
                right.append(targets.pop(0))
                b *= new[right[-1]]
        blocks.append((left, right))
    return blocks


def _contiguous(order: list[int], axes: list[int]) -> bool:
    start = order.index(axes[0])
    return order[start : start + len(axes)] == axes


def _few(order: list[int], blocks: list[tuple[list[int], list[int]]], ones: tuple[int, ...]) -> Groups:
    """The order as groups: each block one group, the first ones merged down to rank 4."""
    groups: list[tuple[int, ...]] = []
    remaining = list(order)
    while remaining:
        block = next(old for old, _ in blocks if old[0] == remaining[0])
        groups.append(tuple(block))
        remaining = remaining[len(block) :]
    while len(groups) > 4:
        groups[:2] = [groups[0] + groups[1]]
    groups[0] = ones + groups[0]
    return tuple(groups)


def expand(walk: Walk, node: ir.Node) -> Sequence[Packed]:
    """Axes of length 1 repeated."""
    shape = static_shape(node.outputs[0])
    source = walk.get(node.inputs[0])
    extra = len(shape) - len(source.shape)
    groups = tuple(tuple(axis + extra for axis in group) for group in source.groups) or ((),)
    groups = ((*range(extra), *groups[0]), *groups[1:])
    return [expand_packed(walk.editor, Packed(source.value, (1,) * extra + source.shape, groups), shape)]


def tile(walk: Walk, node: ir.Node) -> Sequence[Packed]:
    """Axes repeated, one after another."""
    packed = walk.get(node.inputs[0])
    repeats = constant(node.inputs[1])
    if repeats is None:
        raise CannotLowerError("the repeats are not constant")
    for axis, count in enumerate(int(count) for count in repeats):
        if count == 1:
            continue
        packed = isolate(walk.editor, packed, axis)
        home = packed.home(axis)
        times = [count if index == home else 1 for index in range(len(packed.groups))]
        value = walk.editor.op("Tile", packed.value, walk.editor.const(times))
        shape = (*packed.shape[:axis], packed.shape[axis] * count, *packed.shape[axis + 1 :])
        packed = Packed(value, shape, packed.groups)
    return [packed]


RULES: dict[str, Rule] = {
    "Transpose": transpose,
    **dict.fromkeys(("Reshape", "Squeeze", "Unsqueeze", "Flatten"), reshape),
    "Expand": expand,
    "Tile": tile,
}

PASS = rank_pass("layout-rank", "reshapes, transposes, expansions and tilings above rank 4", RULES)
