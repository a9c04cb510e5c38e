"""GridSample of volumes on grids whose x, y and z each depend on one axis: products with small matrices.

A translation of the identity grid is such a grid. Linear interpolation along one axis is a product with
A[i, j] = max(0, 1 - |index_i - j|), so that out = Az (Ay (Ax volume)); rows of places outside are zero, which is
the zero padding. That a grid is separable is proven from what makes it (`dependence`), and only a coordinate an
axis is then computed, by the same operators, so that the whole grid need not exist. Exact up to rounding for
finite volumes.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import onnx_ir as ir

from ..model import describe, static_shape
from .dependence import Numbering, trace, varies
from .editing import Editor
from .passes import CannotLowerError, Outcome, Pass
from .picking import Picker
from .sampling import Sampling, index_of, is_volumetric, linear_mode, read_sampling, tent

SAMPLE_COST = 250
"""Multiplications that a matrix product does in the time of one sample by a 4-D GridSample (ONNX Runtime, CPU)."""

AXES = {"z": 1, "y": 2, "x": 3}
"""Axis of the grid [N, Do, Ho, Wo, 3] along which each coordinate may vary, in the order of the volume's axes."""


def apply(model: ir.Model) -> Outcome:
    """See the module."""
    outcome = Outcome()
    for node in list(model.graph):
        if not is_volumetric(node):
            continue
        editor = Editor(model, before=node)
        try:
            sampling = read_sampling(node, editor.opset)
            _prove(sampling)
            source, different = _source(sampling)
        except CannotLowerError as reason:
            outcome.left[describe(node)] = str(reason)
            continue
        outcome.rewritten.append(describe(node))
        order = _order(sampling, shared=different < sampling.batch)
        if multiplications(sampling, order) <= planes_cost(sampling):
            result = _by_matrices(
                editor, sampling, order, editor.reshape(source, [different, sampling.channels, *sampling.size])
            )
        else:
            result = _by_planes(editor, sampling)
        editor.replace([editor.reshape(result, sampling.shape)])
    return outcome


PASS = Pass("separable-grid-sample", "GridSample on translated identity grids as matrix products", apply)


def _prove(sampling: Sampling) -> None:
    numbers = Numbering().of(sampling.grid)
    for column, (name, own) in enumerate(reversed(AXES.items())):
        others = [axis for axis, may in enumerate(varies(numbers[..., column])) if may and axis not in (0, own)]
        if others:
            where = ", ".join(f"axis {axis}" for axis in others)
            raise CannotLowerError(f"{name} of the grid is not proven to depend on axis {own} alone: {where}, too")


def multiplications(sampling: Sampling, order: tuple[int, ...]) -> int:
    """What the three products take, the axes of the volume (0 depth, 1 height, 2 width) done in this order."""
    lengths, total = list(sampling.size), 0
    for axis in order:
        total += math.prod(lengths) * sampling.out[axis]
        lengths[axis] = sampling.out[axis]
    return total * sampling.batch * sampling.channels


def planes_cost(sampling: Sampling) -> int:
    """The same for sampling each depth slice by a 4-D GridSample and mixing the slices by a product."""
    rows = sampling.batch * sampling.channels * sampling.size[0] * sampling.out[1] * sampling.out[2]
    return rows * (SAMPLE_COST + sampling.out[0])


def _order(sampling: Sampling, *, shared: bool) -> tuple[int, ...]:
    """The cheapest order; a shared volume begins with the width, whose product spreads it to rank 4 at most."""
    orders = (order for order in itertools.permutations((2, 1, 0)) if order[0] == 2 or not shared)
    return min(orders, key=lambda order: multiplications(sampling, order))


def _source(sampling: Sampling) -> tuple[ir.Value, int]:
    """Where the volumes come from and how many different ones there are, each for as many neighbours in the batch."""
    found, different = sampling.volume, sampling.batch
    length = sampling.channels * math.prod(sampling.size)
    for value, places in trace(sampling.volume):
        count, rest = divmod(math.prod(static_shape(value)), length)
        if rest or not count or count > different or sampling.batch % count:
            continue
        wanted = np.arange(count * length).reshape(count, 1, length)
        if (places.reshape(count, -1, length) == wanted).all():
            found, different = value, count
    return found, different


def _indices(editor: Editor, sampling: Sampling) -> list[ir.Value]:
    """Where the places lie along depth, height and width: three values [N, places of the axis]."""
    shape = (sampling.batch, *sampling.out, 3)
    picker = Picker(editor)
    positions = np.arange(math.prod(shape)).reshape(shape)
    along = (positions[:, :, 0, 0, 2], positions[:, 0, :, 0, 1], positions[:, 0, 0, :, 0])
    return [
        index_of(editor, picker.pick(sampling.grid, places), length, align_corners=sampling.align_corners)
        for places, length in zip(along, sampling.size, strict=True)
    ]


def _matrix(editor: Editor, index: ir.Value, batch: int, places: int, length: int, *, right: bool = False) -> ir.Value:
    """A [N, 1, places, length]; or its transpose, to multiply from the right, [N, 1, length, places]."""
    elements = np.arange(length, dtype=np.float32)
    if right:
        return tent(editor, editor.reshape(index, [batch, 1, 1, places]), editor.const(elements.reshape(1, 1, -1, 1)))
    return tent(editor, editor.reshape(index, [batch, 1, places, 1]), editor.const(elements.reshape(1, 1, 1, -1)))


def _by_matrices(editor: Editor, sampling: Sampling, order: tuple[int, ...], value: ir.Value) -> ir.Value:
    """[N, C, ...]; `value` holds the different volumes, the first product spreads them over the batch."""
    different, lengths = static_shape(value)[0], list(sampling.size)
    indices = _indices(editor, sampling)
    for axis in order:
        outer, inner = sampling.channels * math.prod(lengths[:axis]), math.prod(lengths[axis + 1 :])
        matrix = _matrix(editor, indices[axis], sampling.batch, sampling.out[axis], lengths[axis], right=axis == 2)
        if axis == 2:
            matrix = editor.reshape(matrix, [different, sampling.batch // different, lengths[2], sampling.out[2]])
            value = editor.op("MatMul", editor.reshape(value, [different, 1, outer, lengths[2]]), matrix)
        else:
            value = editor.op("MatMul", matrix, editor.reshape(value, [sampling.batch, outer, lengths[axis], inner]))
        different, lengths[axis] = sampling.batch, sampling.out[axis]
    return value


def _by_planes(editor: Editor, sampling: Sampling) -> ir.Value:
    """[N, C, Do, Ho·Wo]; each depth slice sampled once, at the x and y that all depths share."""
    (depth, height, width), (depth_out, height_out, width_out) = sampling.size, sampling.out
    shape = (sampling.batch, *sampling.out, 3)
    first = np.arange(math.prod(shape)).reshape(shape)[:, 0, :, :, :2]
    sampled = editor.op(
        "GridSample",
        editor.reshape(sampling.volume, [sampling.batch, sampling.channels * depth, height, width]),
        Picker(editor).pick(sampling.grid, first),
        mode=linear_mode(editor.opset),
        padding_mode="zeros",
        align_corners=int(sampling.align_corners),
    )
    slices = editor.reshape(sampled, [sampling.batch, sampling.channels, depth, height_out * width_out])
    return editor.op("MatMul", _matrix(editor, _indices(editor, sampling)[0], sampling.batch, depth_out, depth), slices)
