"""Between which numbers each element of a small value lies, whatever the inputs are (none of them NaN)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from ..model import attribute, constant
from ..shapes import known_shape

MAX_ELEMENTS = 4096
"""Larger values are taken as unbounded."""

SAME_ORDER: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "Round": np.rint,
    "Floor": np.floor,
    "Ceil": np.ceil,
    "Relu": lambda x: np.maximum(x, 0),
}
"""Operators that never fall: the bounds of the result are theirs of the input's bounds."""

MOVES = frozenset({"Gather", "Reshape", "Squeeze", "Unsqueeze", "Slice", "Identity"})
"""Operators that pick or rename elements."""


@dataclass(frozen=True)
class Interval:
    """Bounds, both included, float64 in the value's shape; infinite where nothing is known."""

    low: np.ndarray
    high: np.ndarray

    def within(self, low: float, high: float) -> bool:
        """Whether all elements are proven to lie between two numbers."""
        return bool((self.low >= low).all() and (self.high <= high).all())


def interval(value: ir.Value) -> Interval | None:
    """Bounds of a value; None when its shape is not known or it is larger than `MAX_ELEMENTS`."""
    shape = known_shape(value)
    if shape is None or math.prod(shape) > MAX_ELEMENTS:
        return None
    known = constant(value)
    if known is not None and known.dtype.kind in "fiu":
        return Interval(*[known.astype(np.float64)] * 2)
    node = value.producer()
    found = None if node is None or node.domain else _through(node)
    if found is None:
        return Interval(np.full(shape, -np.inf), np.full(shape, np.inf))
    return Interval(np.broadcast_to(found.low, shape), np.broadcast_to(found.high, shape))


def _through(node: ir.Node) -> Interval | None:
    """Bounds of a node's only output, broadcast to its shape later; None where its operator tells nothing."""
    sources = [None if value is None else interval(value) for value in node.inputs]
    first = sources[0] if sources else None
    if node.op_type == "Concat":
        parts = [part for part in sources if part is not None]
        if len(parts) < len(sources):
            return None
        axis = attribute(node, "axis")
        return Interval(*(np.concatenate([getattr(p, side) for p in parts], axis) for side in ("low", "high")))
    if first is None:
        return None
    if node.op_type in SAME_ORDER:
        return Interval(*(SAME_ORDER[node.op_type](side) for side in (first.low, first.high)))
    if node.op_type == "Cast":
        return _cast(node, first)
    if node.op_type in MOVES:
        return _moved(node, first)
    if node.op_type == "Clip":
        return _clip(first, *[*sources[1:], None, None][:2])
    if any(source is None for source in sources):
        return None
    lows, highs = [s.low for s in sources if s], [s.high for s in sources if s]
    match node.op_type:
        case "Min":
            return Interval(_all(np.minimum, lows), _all(np.minimum, highs))
        case "Max":
            return Interval(_all(np.maximum, lows), _all(np.maximum, highs))
        case "Add":
            return Interval(lows[0] + lows[1], highs[0] + highs[1])
        case "Sub":
            return Interval(lows[0] - highs[1], highs[0] - lows[1])
        case "Mul":
            return _product(lows, highs)
    return None


def _product(lows: list[np.ndarray], highs: list[np.ndarray]) -> Interval:
    """Of two values. A bound of zero times an infinite one tells nothing."""
    with np.errstate(invalid="ignore"):
        corners = [a * b for a in (lows[0], highs[0]) for b in (lows[1], highs[1])]
    unknown = np.isnan(corners).any(0)
    low, high = _all(np.minimum, corners), _all(np.maximum, corners)
    return Interval(np.where(unknown, -np.inf, low), np.where(unknown, np.inf, high))


def _clip(source: Interval, low: Interval | None, high: Interval | None) -> Interval:
    found = source
    if low is not None:
        found = Interval(np.maximum(found.low, low.low), np.maximum(found.high, low.high))
    if high is not None:
        found = Interval(np.minimum(found.low, high.low), np.minimum(found.high, high.high))
    return found


def _cast(node: ir.Node, source: Interval) -> Interval | None:
    """Whole numbers are cut towards zero; float32 and int64 hold what is small here, other types may not."""
    to = ir.DataType(attribute(node, "to"))
    if to == ir.DataType.INT64:
        return Interval(np.trunc(source.low), np.trunc(source.high))
    return source if to in (ir.DataType.FLOAT, ir.DataType.DOUBLE) else None


def _moved(node: ir.Node, source: Interval) -> Interval | None:
    """The bounds moved like the elements where that is simple, else those of all elements together."""
    if node.op_type == "Gather":
        picked = constant(node.inputs[1])
        if picked is not None:
            axis = attribute(node, "axis", 0)
            return Interval(*(np.take(side, picked, axis) for side in (source.low, source.high)))
    shape = known_shape(node.outputs[0])
    if node.op_type != "Slice" and shape is not None:
        return Interval(source.low.reshape(shape), source.high.reshape(shape))
    if not source.low.size:
        return None
    return Interval(source.low.min(), source.high.max())


def _all(combine: np.ufunc, sides: list[np.ndarray]) -> np.ndarray:
    total = sides[0]
    for side in sides[1:]:
        total = combine(total, side)
    return np.asarray(total)
