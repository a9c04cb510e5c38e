"""A nearest upsampling folded into the convolution that reads it.

Output pixel s·q + p of a convolution over repeated pixels reads, for tap r, source pixel q + floor((p + r - pad) / s):
several taps meet on one source pixel, and their weights add up. Each phase p is thus a smaller convolution at
the low resolution, and phases whose taps meet alike are one (a factor of 4 and three taps have 2, 1, 1, 2 sums,
the middle phases being equal). Zeros around the repeated picture are zeros around the small one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from ..model import constant, describe, static_shape
from .conv2d import Conv2d, conv_op, convolutions
from .editing import Editor
from .interleave import interleave
from .nearest import repeats
from .passes import CannotLowerError, Outcome, Pass
from .winograd import crop

UNARY = frozenset({"Abs", "Clip", "Elu", "Exp", "LeakyRelu", "Neg", "Relu", "Sigmoid", "Softplus", "Sqrt", "Tanh"})
"""Functions of one element that may as well be done before the phases are put in their places."""


@dataclass(frozen=True)
class Phase:
    """Every s-th output along one axis: sums of taps, over source pixels q + first, q + first + 1, ..."""

    first: int
    sums: tuple[tuple[int, ...], ...]
    """For each source pixel of the window, the taps of the kernel that meet on it."""

    def pads(self, length: int, count: int) -> tuple[int, int]:
        """Zeros before and after a source of `length` for `count` outputs.

        Raises:
            CannotLowerError: pixels would have to be cut off instead.
        """
        before, after = -self.first, count + self.first + len(self.sums) - 1 - length
        if before < 0 or after < 0:
            raise CannotLowerError("its padding does not reach the border")
        return before, after


def phases(factor: int, taps: int, pad: int) -> list[Phase]:
    """The phases of one axis, in order."""
    made = []
    for phase in range(factor):
        sources = [(phase + tap - pad) // factor for tap in range(taps)]
        window = range(sources[0], sources[-1] + 1)
        made.append(Phase(window[0], tuple(tuple(t for t in range(taps) if sources[t] == s) for s in window)))
    return made


def conv_of_repeated(editor: Editor, conv: Conv2d, source: ir.Value, factors: tuple[int, int]) -> list[ir.Value]:
    """The phases of a convolution over `source` repeated: sH·sW values, row by row, equal ones only once.

    Raises:
        CannotLowerError: see `Phase.pads`.
    """
    lengths, outputs = static_shape(source)[2:], conv.out_shape[2:]
    counts = [math.ceil(size / factor) for size, factor in zip(outputs, factors, strict=True)]
    rows, columns = (phases(factors[i], conv.kernel[i], conv.window.before[i]) for i in (0, 1))
    pads = {(axis, phase): phase.pads(lengths[axis], counts[axis])
            for axis, axis_phases in enumerate((rows, columns)) for phase in axis_phases}  # fmt: skip
    made: dict[tuple[Phase, Phase], ir.Value] = {}
    for row in rows:
        for column in columns:
            if (row, column) not in made:
                weight = summed(summed(conv.weight.astype(np.float64), 2, row.sums), 3, column.sums)
                (top, bottom), (left, right) = pads[0, row], pads[1, column]
                made[row, column] = conv_op(
                    editor, source, weight.astype(np.float32), conv.bias, pads=[top, left, bottom, right]
                )
    return [made[row, column] for row in rows for column in columns]


def summed(weight: np.ndarray, axis: int, sums: Sequence[Sequence[int]]) -> np.ndarray:
    """Weights of the taps that meet, added up along an axis."""
    return np.concatenate([weight.take(taps, axis).sum(axis, keepdims=True) for taps in sums], axis)


def fold(model: ir.Model, conv: Conv2d, resize: ir.Node, factors: tuple[int, int]) -> None:
    """Rewrite one convolution, with the functions of one element that alone read it."""
    editor = Editor(model, conv.node)
    assert resize.inputs[0] is not None
    parts = conv_of_repeated(editor, conv, resize.inputs[0], factors)
    last = conv.node
    while (follower := _only_reader(last)) is not None:
        rest = follower.inputs[1:]
        attributes = {name: attr.value for name, attr in follower.attributes.items()}
        done = {part: editor.op(follower.op_type, part, *rest, **attributes) for part in dict.fromkeys(parts)}
        parts, last = [done[part] for part in parts], follower
    stacked = editor.op("Concat", *parts, axis=0)
    batch, channels, *_ = conv.out_shape
    _, _, height, width = static_shape(stacked)
    stacked = editor.reshape(stacked, [math.prod(factors), batch * channels, height, width])
    value = interleave(editor, stacked, factors)
    value = editor.reshape(value, [batch, channels, height * factors[0], width * factors[1]])
    value = crop(editor, value, conv.out_shape[2:])
    chain = [last]
    while chain[-1] is not conv.node:
        producer = chain[-1].inputs[0].producer()  # type: ignore[union-attr]
        assert producer is not None
        chain.append(producer)
    editor.replace([value], last)
    for node in chain[1:]:
        model.graph.remove(node, safe=True)


def _only_reader(node: ir.Node) -> ir.Node | None:
    """The function of one element that alone reads a node's output, if that is all that does."""
    (output,) = node.outputs
    readers = list(output.uses())
    if len(readers) != 1 or output.is_graph_output():
        return None
    reader = readers[0].node
    known = all(value is None or constant(value) is not None for value in reader.inputs[1:])
    return reader if reader.op_type in UNARY and not reader.domain and known else None


def apply(model: ir.Model) -> Outcome:
    """Fold every upsampling by a whole factor into the plain convolutions that read it."""
    outcome = Outcome()
    for conv in convolutions(model, outcome.left):
        resize = conv.value.producer()
        factors = repeats(resize)
        if resize is None or factors is None or factors == (1, 1):
            outcome.left[describe(conv.node)] = "its input is not repeated pixels"
            continue
        if not conv.plain:
            outcome.left[describe(conv.node)] = "not a plain convolution"
            continue
        name = describe(conv.node)
        try:
            fold(model, conv, resize, factors)
        except CannotLowerError as error:
            outcome.left[name] = str(error)
            continue
        outcome.rewritten.append(name)
    return outcome


PASS = Pass("fold-upsample", "nearest upsampling folded into the convolutions that read it", apply)
