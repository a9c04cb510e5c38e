"""Which form of a 3-D convolution is fastest on ONNX Runtime's CPU provider, by estimated cost.

Where the slices come from a nearest upsampling, the phases of `upsample` are convolutions of their own at the low
resolution; each takes the form that is best for it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import onnx_ir as ir

from ..model import static_shape
from . import conv3d_direct, conv3d_patches, conv3d_winograd, overlap_save
from .conv3d import Conv3d
from .depth_sum import plain
from .editing import Editor
from .interleave import interleave
from .nearest import repeats
from .passes import CannotLowerError
from .upsample import Phase, phases, summed
from .volumes import Window
from .winograd import crop


def cpu_form(editor: Editor, conv: Conv3d) -> ir.Value | None:
    """The cheapest form; None for groups, which `conv3d` does."""
    if conv.groups != 1:
        return None
    producer = conv.value.producer()
    factors = repeats(producer)
    if producer is not None and factors is not None and factors != (1, 1) and plain(conv):
        assert producer.inputs[0] is not None
        try:
            return of_repeated(editor, conv, producer.inputs[0], factors)
        except CannotLowerError:
            pass  # its padding does not reach the border: upsampled as it stands
    return cheapest(editor, conv)


def cheapest(editor: Editor, conv: Conv3d) -> ir.Value:
    """The form with the least estimated cost."""
    forms: list[tuple[float, Callable[[], ir.Value]]] = [
        (conv3d_direct.cost(conv, inputs=True), lambda: conv3d_direct.taps_as_inputs(editor, conv)),
        (conv3d_direct.cost(conv, inputs=False), lambda: conv3d_direct.taps_as_outputs(editor, conv)),
        (conv3d_patches.cost(conv), lambda: conv3d_patches.conv3d_by_patches(editor, conv)),
    ]
    if conv3d_winograd.fits(conv):
        for inputs in (True, False):
            forms.append(
                (
                    conv3d_winograd.cost(conv, taps_as_inputs=inputs),
                    lambda inputs=inputs: conv3d_winograd.conv3d_by_winograd(editor, conv, taps_as_inputs=inputs),  # type: ignore[misc]
                )
            )
    cut = overlap_save.tiling(conv) if plain(conv) and max(conv.weight.shape[3:]) > 1 else None
    if cut is not None:
        forms.append((cut.cost(conv), lambda: overlap_save.conv3d_by_dft(editor, conv, cut)))
    return min(forms, key=lambda form: form[0])[1]()


def of_repeated(editor: Editor, conv: Conv3d, source: ir.Value, factors: tuple[int, int]) -> ir.Value:
    """A convolution of `source` [N·D, C, h, w] repeated along H and W.

    Raises:
        CannotLowerError: see `Phase.pads`.
    """
    lengths = static_shape(source)[2:]
    counts = [math.ceil(size / factor) for size, factor in zip(conv.shape[3:], factors, strict=True)]
    rows, columns = (phases(factors[i], conv.weight.shape[3 + i], conv.window.before[1 + i]) for i in (0, 1))
    pads = {(axis, phase): phase.pads(lengths[axis], counts[axis])
            for axis, axis_phases in enumerate((rows, columns)) for phase in axis_phases}  # fmt: skip
    made: dict[tuple[Phase, Phase], ir.Value] = {}
    for row in rows:
        for column in columns:
            if (row, column) in made:
                continue
            weight = summed(summed(conv.weight.astype(np.float64), 3, row.sums), 4, column.sums).astype(np.float32)
            (top, bottom), (left, right) = pads[0, row], pads[1, column]
            before, after = (conv.window.before[0], top, left), (conv.window.after[0], bottom, right)
            window = Window(tuple(weight.shape[2:]), conv.window.strides, conv.window.dilations, before, after)
            part = replace(conv, value=source, weight=weight, window=window, shape=(*conv.shape[:3], *counts))
            made[row, column] = cheapest(editor, part)
    stacked = editor.op("Concat", *[made[row, column] for row in rows for column in columns], axis=0)
    slices, out = conv.shape[0] * conv.shape[2], conv.shape[1]
    stacked = editor.reshape(stacked, [math.prod(factors), slices * out, *counts])
    value = editor.reshape(
        interleave(editor, stacked, factors), [slices, out, counts[0] * factors[0], counts[1] * factors[1]]
    )
    return crop(editor, value, conv.shape[3:])
