"""The generator's published graph at full size, with zeros for weights: what goes in, and what presets leave."""

from __future__ import annotations

from collections import Counter

import numpy as np
import onnx_ir as ir
import pytest

from pipeline.graphs.lower.presets import lower
from pipeline.graphs.model import prepare
from pipeline.graphs.shapes import known_shape
from pipeline.graphs.standins import FULL, AbsentWeights, generator


def full_size() -> ir.Model:
    """The weights are one zero each in memory, seen as the whole."""
    model = ir.from_proto(generator(FULL, AbsentWeights()))
    for value in model.graph.initializers.values():
        if isinstance(value.const_value, ir.ExternalTensor):
            zeros = np.broadcast_to(np.float32(0), value.const_value.shape.numpy())
            value.const_value = ir.tensor(zeros, name=value.name)
    return model


def ranks(model: ir.Model, operator: str) -> Counter[int]:
    shapes = [known_shape(node.outputs[0]) for node in model.graph if node.op_type == operator and not node.domain]
    assert None not in shapes
    return Counter(len(shape) for shape in shapes if shape is not None)


def test_277_nodes_with_13_convolutions_and_2_samplings_of_volumes() -> None:
    model = full_size()
    assert len(model.graph) == 277
    shapes = {value.name: known_shape(value) for value in model.graph.inputs}
    assert shapes == {"feature_3d": (1, 32, 16, 64, 64), "kp_driving": (1, 21, 3), "kp_source": (1, 21, 3)}
    assert [known_shape(value) for value in model.graph.outputs] == [(1, 3, 512, 512)]
    prepare(model)
    assert ranks(model, "Conv")[5] == 13
    assert ranks(model, "GridSample") == {5: 2}


def test_gridsample_leaves_the_13_convolutions_and_no_sampling_of_volumes() -> None:
    model = lower(full_size(), "gridsample").model
    assert ranks(model, "Conv")[5] == 13
    assert ranks(model, "GridSample")[5] == 0
    assert {str(value.name): known_shape(value) for value in model.graph.inputs} == {
        "feature_3d": (1, 32, 16, 64, 64), "kp_driving": (1, 21, 3), "kp_source": (1, 21, 3)
    }  # fmt: skip


@pytest.mark.parametrize("preset", ["rank4", "cpu"])
def test_rank4_leaves_no_value_above_rank_4(preset: str) -> None:
    model = lower(full_size(), preset).model
    values = [*model.graph.inputs, *model.graph.initializers.values(), *(v for n in model.graph for v in n.outputs)]
    shapes = [known_shape(value) for value in values]
    assert None not in shapes
    assert max(len(shape) for shape in shapes if shape is not None) <= 4
    inputs = {str(value.name): known_shape(value) for value in model.graph.inputs}
    assert inputs == {"feature_3d": (32, 16, 64, 64), "kp_driving": (1, 21, 3), "kp_source": (1, 21, 3)}
    assert [known_shape(value) for value in model.graph.outputs] == [(1, 3, 512, 512)]
