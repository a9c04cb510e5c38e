"""How a tensor of any rank is held in one of rank 4 or less.

A `Packed` tensor is the data of a logical tensor with its axes in some order, neighbours merged: a volume
[N,C,D,H,W] held as groups ((0, 2), (1,), (3,), (4,)) is a physical tensor [N·D, C, H, W]. A Transpose of the
logical tensor, and most Reshapes, then cost nothing: they only rename axes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from ..model import constant
from .editing import Editor

MAX_RANK = 4
"""Greatest rank of a physical tensor."""

Groups = tuple[tuple[int, ...], ...]
"""Logical axes of each physical axis, outermost first; together each logical axis once."""


@dataclass(frozen=True)
class Packed:
    """A logical tensor of `shape`, held in `value` as `groups` say.

    A group may be empty: a physical axis of length 1. Logical axes of length 1 may stand in any group.
    """

    value: ir.Value
    shape: tuple[int, ...]
    groups: Groups

    @property
    def order(self) -> tuple[int, ...]:
        """The logical axes longer than 1, as they follow one another in memory."""
        return tuple(axis for group in self.groups for axis in group if self.shape[axis] != 1)

    @property
    def lengths(self) -> tuple[int, ...]:
        """Physical shape."""
        return physical_shape(self.shape, self.groups)

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    def home(self, axis: int) -> int:
        """The physical axis that a logical axis lies in."""
        return next(index for index, group in enumerate(self.groups) if axis in group)

    def alone(self, axis: int) -> bool:
        """Whether nothing longer than 1 shares the axis' physical axis."""
        return all(self.shape[other] == 1 for other in self.groups[self.home(axis)] if other != axis)


def plain(value: ir.Value, shape: Sequence[int]) -> Packed:
    """A tensor as it is: each axis alone, in order."""
    return Packed(value, tuple(shape), tuple((axis,) for axis in range(len(shape))))


def physical_shape(shape: Sequence[int], groups: Groups) -> tuple[int, ...]:
    """Lengths of the physical axes."""
    return tuple(math.prod(shape[axis] for axis in group) for group in groups)


def row_major(shape: Sequence[int]) -> Groups:
    """All axes in order, the leading ones merged so that at most `MAX_RANK` groups remain."""
    extra = max(0, len(shape) - MAX_RANK)
    return (tuple(range(extra + 1)), *((axis,) for axis in range(extra + 1, len(shape)))) if shape else ()


def repack(editor: Editor, packed: Packed, groups: Groups) -> Packed:
    """The same tensor in other groups: reshapes and transposes of rank 4 or less, none where nothing moves."""
    target = Packed(packed.value, packed.shape, groups)
    known = constant(packed.value)
    if known is not None:
        unpacked = known.reshape([packed.shape[axis] for group in packed.groups for axis in group])
        position = {axis: index for index, axis in enumerate(axis for group in packed.groups for axis in group)}
        moved = unpacked.transpose([position[axis] for group in groups for axis in group])
        return Packed(editor.const(np.ascontiguousarray(moved.reshape(target.lengths))), packed.shape, groups)
    value = packed.value
    order = list(packed.order)
    while tuple(order) != target.order:
        blocks, perm = _blocks(order, target.order)
        if len(blocks) > MAX_RANK:
            # Bring the block that comes first to the front of those not yet in place: [done, before, it, after].
            done = next(index for index, source in enumerate(perm) if index != source)
            runs = (blocks[:done], blocks[done : perm[done]], [blocks[perm[done]]], blocks[perm[done] + 1 :])
            blocks = [[axis for block in run for axis in block] for run in runs]
            perm = [0, 2, 1, 3]
        value = editor.reshape(value, [math.prod(packed.shape[axis] for axis in block) for block in blocks])
        value = editor.transpose(value, perm)
        order = [axis for index in perm for axis in blocks[index]]
    return Packed(editor.reshape(value, target.lengths), packed.shape, groups)


def _blocks(order: Sequence[int], wanted: Sequence[int]) -> tuple[list[list[int]], list[int]]:
    """Runs of axes that stay together, in their present order, and the permutation that sorts them."""
    place = {axis: index for index, axis in enumerate(wanted)}
    blocks: list[list[int]] = []
    for axis in order:
        if blocks and place[axis] == place[blocks[-1][-1]] + 1:
            blocks[-1].append(axis)
        else:
            blocks.append([axis])
    return blocks, sorted(range(len(blocks)), key=lambda index: place[blocks[index][0]])


def isolate(editor: Editor, packed: Packed, axis: int) -> Packed:
    """The tensor with one logical axis alone in its physical axis; as it is when it already is, else in its order."""
    if packed.alone(axis) and len(packed.lengths) <= MAX_RANK:
        return packed
    flat = [other for group in packed.groups for other in group]
    index = flat.index(axis)
    parts = (tuple(flat[:index]), (axis,), tuple(flat[index + 1 :]))
    return repack(editor, packed, tuple(part for part in parts if part))


def separate(editor: Editor, packed: Packed, axes: Sequence[int]) -> tuple[Packed, list[int]]:
    """The tensor with no physical axis that mixes `axes` with others, and the physical axes that hold them."""
    chosen = set(axes)

    def inside(group: Sequence[int]) -> bool | None:
        kinds = {axis in chosen for axis in group if packed.shape[axis] != 1}
        return None if len(kinds) > 1 else (kinds.pop() if kinds else all(axis in chosen for axis in group))

    if len(packed.groups) > MAX_RANK or any(inside(group) is None for group in packed.groups):
        runs: list[list[int]] = []
        for axis in (axis for group in packed.groups for axis in group):
            if runs and (packed.shape[axis] == 1 or (runs[-1][-1] in chosen) == (axis in chosen)):
                runs[-1].insert(len(runs[-1]) - (packed.shape[axis] == 1), axis)
            else:
                runs.append([axis])
        if len(runs) > MAX_RANK:
            flat = [axis for run in runs for axis in run]
            runs = [[axis for axis in flat if (axis in chosen) is side] for side in (False, True)]
        packed = repack(editor, packed, tuple(tuple(run) for run in runs if run))
    return packed, [index for index, group in enumerate(packed.groups) if inside(group)]
