"""exp(-a (x² + y² + z²)) on a grid, as a product of three small exponentials.

Wherever Exp is taken of a scaled ReduceSum whose summands each depend on one axis more than they share, proven by
`dependence`: exp(k Σ t_c) = Π exp(k t_c), and each factor is computed on its own axis alone. The summands must
have one sign (squares, absolute values), as exp(90) exp(-90) would be infinite times zero. Exact up to rounding.
"""

from __future__ import annotations

import math

import numpy as np
import onnx_ir as ir

from ..model import constant, describe, static_shape
from .dependence import Numbering, varies
from .editing import Editor
from .passes import CannotLowerError, Outcome, Pass
from .picking import Picker

SAVING = 4
"""Times fewer exponentials that make the rewrite worth it; the products remain."""


def apply(model: ir.Model) -> Outcome:
    """See the module."""
    outcome = Outcome()
    for node in list(model.graph):
        if node.op_type != "Exp" or node.domain:
            continue
        scaling, reduction = _chain(node)
        if reduction is None:
            continue
        editor = Editor(model, before=node)
        try:
            factors = _factors(reduction)
            result = _product(editor, reduction, scaling, factors)
        except CannotLowerError as reason:
            outcome.left[describe(node)] = str(reason)
            continue
        outcome.rewritten.append(describe(node))
        editor.replace([editor.reshape(result, static_shape(node.outputs[0]))])
    return outcome


PASS = Pass("separable-exp", "exponentials of sums over coordinates as products, one factor an axis", apply)


def _chain(node: ir.Node) -> tuple[list[ir.Node], ir.Node | None]:
    """The scalings between a ReduceSum and an Exp, first to last, and the ReduceSum if there is one."""
    scaling: list[ir.Node] = []
    value = node.inputs[0]
    while value is not None and (maker := value.producer()) is not None and not maker.domain:
        if maker.op_type == "ReduceSum":
            return scaling[::-1], maker
        factor = constant(maker.inputs[1]) if len(maker.inputs) == 2 else None
        if maker.op_type not in ("Mul", "Div") or factor is None or factor.ndim:
            break
        scaling.append(maker)
        value = maker.inputs[0]
    return scaling, None


def _factors(reduction: ir.Node) -> list[np.ndarray]:
    """For each summand, the flat positions in the summed value of the elements that may differ, other axes kept at 1.

    The summed axis is gone. Raises CannotLowerError where nothing is gained or the sign is not proven.
    """
    summed, axes = reduction.inputs[0], constant(reduction.inputs[1]) if len(reduction.inputs) > 1 else None
    assert summed is not None
    if axes is None or axes.size != 1:
        raise CannotLowerError("the sum is not over one constant axis")
    if not _not_negative(summed):
        raise CannotLowerError("the summands are not proven to have one sign")
    axis = int(axes.reshape(-1)[0]) % len(static_shape(summed))
    numbers = Numbering().of(summed)
    positions = np.arange(numbers.size).reshape(numbers.shape)
    factors = []
    for place in range(numbers.shape[axis]):
        kept = tuple(slice(None) if may else slice(0, 1) for may in varies(np.take(numbers, place, axis)))
        factors.append(np.take(positions, place, axis)[kept])
    whole = numbers.size // numbers.shape[axis]
    if SAVING * sum(factor.size for factor in factors) > whole:
        raise CannotLowerError("the summands are not proven to depend on few axes each")
    return factors


def _not_negative(value: ir.Value) -> bool:
    node = value.producer()
    if node is None or node.domain:
        return False
    if node.op_type == "Mul":
        return node.inputs[0] is node.inputs[1]
    if node.op_type == "Pow":
        exponent = constant(node.inputs[1])
        return exponent is not None and bool((exponent % 2 == 0).all())
    return node.op_type in ("Abs", "Relu", "Exp", "Sqrt", "Sigmoid")


def _product(editor: Editor, reduction: ir.Node, scaling: list[ir.Node], factors: list[np.ndarray]) -> ir.Value:
    """The product, in the shape of the sum without the summed axis, neighbouring axes merged where they can be."""
    summed = reduction.inputs[0]
    assert summed is not None
    picker = Picker(editor)
    values = []
    for positions in factors:
        value = picker.pick(summed, positions.reshape(-1))
        for step in scaling:
            value = editor.op(step.op_type, value, step.inputs[1])
        values.append((editor.op("Exp", value), positions.shape))
    values.sort(key=lambda pair: math.prod(pair[1]))
    result, shape = values[0]
    for value, other in values[1:]:
        left, right = _aligned(shape, other)
        result = editor.op("Mul", editor.reshape(result, left), editor.reshape(value, right))
        shape = tuple(max(pair) for pair in zip(shape, other, strict=True))
    return result


def _aligned(left: tuple[int, ...], right: tuple[int, ...]) -> tuple[list[int], list[int]]:
    """Two shapes that broadcast, neighbouring axes merged where both are spread or kept alike."""
    kinds: list[tuple[bool, bool]] = []
    merged: tuple[list[int], list[int]] = ([], [])
    for first, second in zip(left, right, strict=True):
        if first == second == 1:
            continue
        kind = (first == 1, second == 1)
        if kinds and kinds[-1] == kind:
            merged[0][-1] *= first
            merged[1][-1] *= second
            continue
        kinds.append(kind)
        merged[0].append(first)
        merged[1].append(second)
    return merged
