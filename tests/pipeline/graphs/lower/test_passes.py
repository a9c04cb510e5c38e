"""Passes in order, and what they say of it."""

from __future__ import annotations

from collections.abc import Callable

import onnx_ir as ir
from onnx.helper import make_node

from pipeline.graphs.lower.passes import Outcome, Pass, run_passes
from tests.pipeline.graphs.graphs import model


def saying(*outcomes: Outcome) -> Callable[[ir.Model], Outcome]:
    each = iter(outcomes)
    return lambda graph: next(each)


def test_a_pass_that_runs_twice_tells_of_both_runs():
    graph = model([make_node("Relu", ["x"], ["y"])], {"x": [1, 4]}, ["y"])
    twice = Pass("twice", "", saying(Outcome(["a"], {"b": "not yet", "c": "never"}), Outcome(["b"], {"c": "never"})))
    once = Pass("once", "", saying(Outcome(["d"])))
    found = run_passes(graph, [twice, once, twice])
    assert found["twice"] == Outcome(["a", "b"], {"c": "never"})
    assert found["once"] == Outcome(["d"])


def test_reasons_name_the_first_nodes():
    outcome = Outcome(left={"Conv 'a'": "odd", "Conv 'b'": "odd", "Conv 'c'": "odd", "Pad 'd'": "new"})
    assert outcome.reasons() == ["Conv 'a', Conv 'b' and 1 more: odd", "Pad 'd': new"]
