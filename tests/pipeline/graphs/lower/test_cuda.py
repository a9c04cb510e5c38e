"""The passes that only a GPU gains from: the same numbers, and what they leave alone."""

from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import helper

from pipeline.graphs.lower import drop_shift, fold_bias, merge_siblings, tap_shares
from pipeline.graphs.lower.passes import Outcome, Pass, run_passes
from tests.pipeline.graphs.graphs import assert_same, model, random, run

few = settings(derandomize=True, deadline=None, max_examples=12)
node = helper.make_node


def rewritten(step: Pass, nodes: list, shape: list[int], constants: dict[str, np.ndarray]) -> tuple[Outcome, Counter]:
    """Apply a pass to a graph from x to y and compare; what it did, and the operators that are left."""
    graph = model(nodes, {"x": shape}, ["y"], constants)
    feeds = {"x": random(shape, 7)}
    before = run(graph, feeds)
    outcome = run_passes(graph, [step])[step.name]
    assert_same(before, run(graph, feeds))
    return outcome, Counter(each.op_type for each in graph.graph)


@few
@given(st.data())
def test_taps_of_wide_kernels_become_shares(data: st.DataObject) -> None:
    rank = data.draw(st.sampled_from([2, 3]))
    kernel = [data.draw(st.sampled_from([1, 3, 5, 7])) for _ in range(rank)]
    settings_ = {
        "strides": [data.draw(st.integers(1, 2)) for _ in range(rank)],
        "dilations": [data.draw(st.integers(1, 2)) for _ in range(rank)],
        "pads": [data.draw(st.integers(0, 3)) for _ in range(2 * rank)],
    }
    outputs = data.draw(st.integers(1, 4))
    constants = {"w": random([outputs, 3, *kernel], 1), "b": random([outputs], 2)}
    outcome, left = rewritten(
        tap_shares.PASS, [node("Conv", ["x", "w", "b"], ["y"], **settings_)], [2, 3, *[13] * rank], constants
    )
    assert left["Conv"] == (2 if max(kernel) >= tap_shares.WIDE else 1)
    assert len(outcome.rewritten) == left["Conv"] - 1


def test_many_outputs_and_groups_keep_their_kernel() -> None:
    outcome, left = rewritten(
        tap_shares.PASS, [node("Conv", ["x", "w"], ["y"])], [1, 2, 9, 9], {"w": random([33, 2, 7, 7])}
    )
    assert left == {"Conv": 1}
    assert list(outcome.left.values()) == ["it has many outputs or a small kernel"]
    outcome, left = rewritten(
        tap_shares.PASS, [node("Conv", ["x", "w"], ["y"], group=2)], [1, 2, 9, 9], {"w": random([2, 1, 7, 7])}
    )
    assert left == {"Conv": 1}


@few
@given(st.integers(2, 4), st.booleans(), st.sampled_from(["Relu", "LeakyRelu", "Neg"]))
def test_siblings_are_merged_with_their_activations(count: int, alike: bool, activation: str) -> None:
    nodes, constants, made = [], {}, []
    for index in range(count):
        constants |= {f"w{index}": random([2 + index, 3, 3, 3], index), f"b{index}": random([2 + index], 9 + index)}
        operator = activation if alike or index else "Sigmoid"
        nodes.append(node("Conv", ["x", f"w{index}", f"b{index}"], [f"c{index}"], pads=[1] * 4))
        nodes.append(node(operator, [f"c{index}"], [f"a{index}"]))
        made.append(f"a{index}")
    outcome, left = rewritten(
        merge_siblings.PASS, [*nodes, node("Concat", made, ["y"], axis=1)], [2, 3, 6, 5], constants
    )
    assert len(outcome.rewritten) == count
    assert left["Conv"] == left["Split"] == 1
    assert left[activation] == (1 if alike and activation in merge_siblings.UNARY else count if alike else count - 1)


def test_convolutions_of_different_windows_are_no_siblings() -> None:
    constants = {"w": random([2, 3, 3, 3]), "v": random([2, 3, 1, 1])}
    nodes = [
        node("Conv", ["x", "w"], ["a"], pads=[1] * 4),
        node("Conv", ["x", "v"], ["b"]),
        node("Add", ["a", "b"], ["y"]),
    ]
    outcome, left = rewritten(merge_siblings.PASS, nodes, [1, 3, 6, 6], constants)
    assert (outcome.rewritten, left["Conv"]) == ([], 2)


@few
@given(st.sampled_from([(), (1,), (4, 1, 1), (1, 4, 1, 1)]), st.booleans(), st.booleans())
def test_constants_join_the_bias(shape: tuple[int, ...], biased: bool, first: bool) -> None:
    constants = {"w": random([4, 3, 3, 3]), "b": random([4], 1), "c": random(shape, 2)}
    nodes = [
        node("Conv", ["x", "w", "b"] if biased else ["x", "w"], ["h"]),
        node("Add", ["c", "h"] if first else ["h", "c"], ["y"]),
    ]
    _, left = rewritten(fold_bias.PASS, nodes, [1, 3, 6, 6], constants)
    assert left == {"Conv": 1}


def test_constants_that_vary_over_the_picture_stay() -> None:
    constants = {"w": random([4, 3, 3, 3]), "c": random([4], 2)}
    nodes = [node("Conv", ["x", "w"], ["h"]), node("Add", ["h", "c"], ["y"])]  # [4] lies along W
    outcome, left = rewritten(fold_bias.PASS, nodes, [1, 3, 6, 6], constants)
    assert left == {"Conv": 1, "Add": 1}
    assert list(outcome.left.values()) == ["the constant varies along other axes than the channels"]


def test_biases_vanish_in_normalisations() -> None:
    constants = {"w": random([4, 4, 3, 3]), "b": random([4], 1), "s": random([4], 2)}
    nodes = [
        node("Conv", ["x", "w", "b"], ["h"], pads=[1] * 4),
        node("Conv", ["x", "w", "b"], ["i"], pads=[1] * 4),
        node("Add", ["h", "i"], ["j"]),
        node("Resize", ["j", "", "scales"], ["k"], mode="nearest", coordinate_transformation_mode="asymmetric",
             nearest_mode="floor"),
        node("InstanceNormalization", ["k", "s", "s"], ["y"]),
    ]  # fmt: skip
    scales = {"scales": np.array([1, 1, 2, 2], np.float32)}
    outcome, _ = rewritten(drop_shift.PASS, nodes, [1, 4, 6, 6], constants | scales)
    assert len(outcome.rewritten) == 2


def test_biases_that_something_else_sees_stay() -> None:
    constants = {"w": random([4, 4, 3, 3]), "b": random([4], 1), "s": random([4], 2)}
    nodes = [
        node("Conv", ["x", "w", "b"], ["h"], pads=[1] * 4),
        node("InstanceNormalization", ["h", "s", "s"], ["n"]),
        node("Add", ["n", "h"], ["y"]),
    ]
    outcome, _ = rewritten(drop_shift.PASS, nodes, [1, 4, 6, 6], constants)
    assert outcome.rewritten == []
