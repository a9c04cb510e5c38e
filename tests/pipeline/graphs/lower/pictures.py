"""Small random convolutions of pictures for the tests of passes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx_ir as ir
from onnx import helper

from pipeline.graphs.lower.passes import Outcome, Pass
from pipeline.graphs.model import clean
from tests.pipeline.graphs.graphs import assert_same, random, run


def weights(*shape: int, seed: int = 1) -> np.ndarray:
    """Weights that keep the size of what they filter."""
    return (random(shape, seed) / np.sqrt(np.prod(shape[1:]))).astype(np.float32)


def conv(inputs: list[str], output: str, **attributes: object) -> object:
    """A Conv node."""
    return helper.make_node("Conv", inputs, [output], name=f"conv_{output}", **attributes)


def check(made: Callable[[], ir.Model], step: Pass, *, tolerance: float = 5e-6) -> tuple[ir.Model, Outcome]:
    """Apply a pass to a graph and compare both on seeded inputs; the graph afterwards and the outcome."""
    before, after = made(), made()
    outcome = step.apply(after)
    clean(after)
    feeds = {str(v.name): random([int(n) for n in v.shape or ()], i) for i, v in enumerate(before.graph.inputs)}
    assert_same(run(before, feeds), run(after, feeds), tolerance=tolerance)
    return after, outcome


def operators(model: ir.Model) -> list[str]:
    """Types of a graph's nodes, in order."""
    return [node.op_type for node in model.graph]
