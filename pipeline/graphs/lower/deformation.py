"""Σ_k mask_k · (base + shift_k) as a matrix product and base · Σ_k mask_k.

The grids that a mask mixes are one constant grid moved by something that does not depend on the place; proven by
splitting each element into a constant part and the rest. The mixture then needs neither the grids nor their
weighted copies. Σ_k mask_k is 1 where a Softmax over that axis proves it. Exact up to rounding.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from ..model import attribute, constant, describe, static_shape
from ..shapes import known_shape
from .dependence import Numbering, bounded_shape, is_movement, move, position_of, sources_of, trace, varies
from .editing import Editor
from .passes import CannotLowerError, Outcome, Pass
from .picking import Picker

NOTHING = -1
"""Number of a rest that is zero."""


@dataclass(frozen=True)
class Mixture:
    """A mixture of moved grids, axes [batch..., K and coordinates in some order, places...]."""

    mask: ir.Value
    grids: ir.Value
    axis: int
    """K, which is summed."""
    coordinate: int
    """The axis that the mask is spread over."""
    batch: int
    """Number of elements before those two axes."""
    places: int
    """Number of elements after them."""
    base: np.ndarray
    """[coordinates, places]."""


def apply(model: ir.Model) -> Outcome:
    """See the module."""
    outcome = Outcome()
    for node in list(model.graph):
        product = node.inputs[0].producer() if node.op_type == "ReduceSum" and node.inputs[0] is not None else None
        if node.domain or product is None or product.op_type != "Mul" or len(node.inputs) < 2:
            continue
        axes = constant(node.inputs[1])
        first, second = product.inputs
        if axes is None or axes.size != 1 or first is None or second is None:
            continue
        try:
            found = _mixture(first, second, int(axes.reshape(-1)[0]))
        except CannotLowerError as reason:
            outcome.left[describe(node)] = str(reason)
            continue
        editor = Editor(model, before=node)
        outcome.rewritten.append(describe(node))
        editor.replace([editor.reshape(_mix(editor, found), static_shape(node.outputs[0]))])
    return outcome


PASS = Pass("deformation", "mixtures of moved grids as a matrix product", apply)


def _mixture(first: ir.Value, second: ir.Value, axis: int) -> Mixture:
    shapes = known_shape(first), known_shape(second)
    if shapes[0] is None or shapes[1] is None or len(shapes[0]) != len(shapes[1]):
        raise CannotLowerError("not two factors of one rank")
    axis %= len(shapes[0])
    for mask, grids in ((first, second), (second, first)):
        small, full = static_shape(mask), static_shape(grids)
        spread = [index for index, (a, b) in enumerate(zip(small, full, strict=True)) if a != b]
        if len(spread) == 1 and small[spread[0]] == 1 and spread[0] != axis:
            break
    else:
        raise CannotLowerError("not a mask spread over one axis")
    coordinate = spread[0]
    if abs(coordinate - axis) != 1:
        raise CannotLowerError("the mask's axis and the coordinates are not neighbours")
    start = min(axis, coordinate)
    base, rest = split_constant(grids, Numbering())
    places = tuple(range(start + 2, len(full)))
    if any(varies(rest)[index] for index in places):
        raise CannotLowerError("the grids are not proven to be one constant grid moved as a whole")
    if any(varies(base)[index] for index in (*range(start), axis)):
        raise CannotLowerError("the grids' constant parts differ")
    one = base[tuple(slice(None) if index in (coordinate, *places) else 0 for index in range(len(full)))]
    batch, count = math.prod(full[:start]), math.prod(full[start + 2 :])
    return Mixture(mask, grids, axis, coordinate, batch, count, one.reshape(full[coordinate], count))


def split_constant(value: ir.Value, numbering: Numbering) -> tuple[np.ndarray, np.ndarray]:
    """A value's elements as a constant and a rest: the constants, and numbers of the rests (`NOTHING` for none).

    Through Add, Sub and whatever only moves elements; where anything else is met, the whole is rest.

    Raises:
        CannotLowerError: as `Numbering.of`.
    """
    shape = bounded_shape(value)
    known = constant(value)
    if known is not None:
        return known.astype(np.float64), np.full(shape, NOTHING)
    node = value.producer()
    if node is not None and is_movement(node):
        parts = [split_constant(source, numbering) for source in sources_of(node)]
        base, rest = (move(node, arrays)[position_of(value)] for arrays in zip(*parts, strict=True))
        return base, rest
    if node is not None and not node.domain and node.op_type in ("Add", "Sub"):
        (base, rest), (other, change) = (split_constant(source, numbering) for source in node.inputs if source)
        base = base + other if node.op_type == "Add" else base - other
        return base, numbering.combined(np.broadcast_arrays(rest, change))
    return np.zeros(shape), numbering.of(value)


def _mix(editor: Editor, found: Mixture) -> ir.Value:
    """[batch, coordinates, places]."""
    full = static_shape(found.grids)
    slots, coordinates = full[found.axis], full[found.coordinate]
    # The shift is read where the base is nearest to 0: there the least of it is lost to rounding.
    nearest = np.abs(found.base).argmin(1)
    positions = np.arange(math.prod(full)).reshape(found.batch, *full[min(found.axis, found.coordinate) :][:2], -1)
    if found.axis < found.coordinate:
        positions = positions.transpose(0, 2, 1, 3)
    chosen = np.take_along_axis(positions, nearest.reshape(1, -1, 1, 1), 3)[..., 0]
    there = np.take_along_axis(found.base, nearest[:, None], 1).astype(np.float32)
    shifts = editor.op("Sub", Picker(editor).pick(found.grids, chosen), editor.const(there[None]))
    mask = editor.reshape(found.mask, [found.batch, slots, found.places])
    mixed = editor.op("MatMul", editor.reshape(shifts, [found.batch, coordinates, slots]), mask)
    base = editor.const(found.base.astype(np.float32)[None])
    if not _sums_to_one(found.mask, found.axis):
        base = editor.op("Mul", base, editor.op("ReduceSum", mask, editor.const([1]), keepdims=1))
    return editor.op("Add", base, mixed)


def _sums_to_one(mask: ir.Value, axis: int) -> bool:
    """Whether the elements along an axis are all those of one row of a Softmax."""
    for value, places in trace(mask):
        node = value.producer()
        if node is None or node.domain or node.op_type != "Softmax":
            continue
        shape = static_shape(value)
        own = attribute(node, "axis", -1)
        assert isinstance(own, int)
        index = np.unravel_index(np.moveaxis(places, axis, -1), shape)
        along = np.sort(index[own % len(shape)], axis=-1)
        others = [part for other, part in enumerate(index) if other != own % len(shape)]
        whole = along.shape[-1] == shape[own % len(shape)] and bool((along == np.arange(along.shape[-1])).all())
        return whole and all(bool((part == part[..., :1]).all()) for part in others)
    return False
