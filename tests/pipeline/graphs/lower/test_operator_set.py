"""A lower operator set: the same function, or the graph as it was."""

from __future__ import annotations

import numpy as np
import pytest
from onnx.helper import make_node

from pipeline.graphs.lower.operator_set import operator_set_pass
from pipeline.graphs.lower.passes import run_passes
from tests.pipeline.graphs.graphs import assert_same, model, random, run

SHAPES = {"x": (1, 3, 6, 5), "grid": (1, 4, 4, 2)}


@pytest.mark.parametrize("mode", ["linear", "cubic", "nearest"])
@pytest.mark.parametrize("opset", [20, 21, 22])
def test_sampled_pictures_stay_the_same(mode: str, opset: int) -> None:
    nodes = [
        make_node("GridSample", ["x", "grid"], ["s"], mode=mode, padding_mode="border"),
        make_node("Transpose", ["s"], ["t"], perm=[0, 2, 3, 1]),
        make_node("ReduceMax", ["t", "axes"], ["y"]),
    ]
    feeds = {name: random(shape, index) for index, (name, shape) in enumerate(SHAPES.items())}
    before = run(model(nodes, SHAPES, ["y"], {"axes": np.asarray([1])}, opset=opset), feeds)
    after = model(nodes, SHAPES, ["y"], {"axes": np.asarray([1])}, opset=opset)
    (outcome,) = run_passes(after, [operator_set_pass(19)]).values()
    assert not outcome.left
    assert after.opset_imports[""] == 19
    assert_same(before, run(after, feeds), tolerance=1e-6)


def test_a_lower_set_stays() -> None:
    after = model([make_node("Relu", ["x"], ["y"])], {"x": (2, 3)}, ["y"], opset=17)
    run_passes(after, [operator_set_pass(19)])
    assert after.opset_imports[""] == 17


@pytest.mark.parametrize(
    ("node", "shapes", "reason"),
    [
        (make_node("Gelu", ["x"], ["y"]), {"x": (2, 3)}, "there is none in operator set 19"),
        (
            make_node("GridSample", ["x", "grid"], ["y"]),
            {"x": (1, 1, 2, 2, 2), "grid": (1, 2, 2, 2, 3)},
            "it samples no pictures [N, C, H, W], which operator set 19 is limited to",
        ),
        (make_node("DFT", ["x"], ["y"]), {"x": (1, 4, 1)}, "it means something else in operator set 19"),
    ],
    ids=["new", "volumes", "changed"],
)
def test_what_the_lower_set_cannot_say_is_named_and_nothing_changes(
    node: object, shapes: dict[str, tuple[int, ...]], reason: str
) -> None:
    after = model([node], shapes, ["y"], opset=21)  # type: ignore[list-item]
    (outcome,) = run_passes(after, [operator_set_pass(19)]).values()
    assert list(outcome.left.values()) == [reason]
    assert after.opset_imports[""] == 21
