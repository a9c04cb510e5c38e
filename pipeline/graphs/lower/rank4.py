"""Nothing above rank 4: every rule in one walk, the graph's inputs and outputs included."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from . import conv3d, elementwise, layout, normalisation, parts, pooling, products, reductions, resizing
from .passes import Outcome, Pass
from .rank import Rule, Walk, flatten_boundary

OPERATORS: tuple[Pass, ...] = (
    elementwise.PASS,
    layout.PASS,
    parts.PASS,
    reductions.PASS,
    conv3d.PASS,
    pooling.PASS,
    resizing.PASS,
    normalisation.PASS,
    products.PASS,
)
"""Each group of operators as a pass of its own."""


def rules(forms: Sequence[conv3d.Form]) -> dict[str, Rule]:
    """Every rule, with the given forms of 3-D convolution."""
    found: dict[str, Rule] = {"Conv": conv3d.rule(forms)}
    for module in (elementwise, layout, parts, reductions, pooling, resizing, normalisation, products):
        found |= module.RULES
    return found


def rank4_pass(*forms: conv3d.Form) -> Pass:
    """All of it at once, so that nothing is unpacked between two operators."""

    def apply(model: ir.Model) -> Outcome:
        flatten_boundary(model)
        return Walk(model, rules(forms), whole=True).run()

    return Pass("rank4", "every operator above rank 4, the graph's boundary included", apply)


PASS = rank4_pass(conv3d.by_cost)
