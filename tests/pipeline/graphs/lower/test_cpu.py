"""The passes for the CPU together, on the small stand-in of the generator."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
import pytest

from pipeline.graphs.lower import conv3d_winograd, sampling, winograd
from pipeline.graphs.lower.cpu import CPU_FINISH, CPU_PASSES
from pipeline.graphs.lower.grid_sample import grid_sample
from pipeline.graphs.lower.passes import run_passes
from pipeline.graphs.model import prepare
from pipeline.graphs.standins.generator import generator
from pipeline.graphs.standins.spec import SMALL
from tests.pipeline.graphs.graphs import assert_same, random, run


@pytest.mark.parametrize("eager", [False, True])
def test_generator(eager: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if eager:  # as at full size, where minimal filtering pays
        monkeypatch.setattr(winograd, "pays", lambda convs: True)
        monkeypatch.setattr(conv3d_winograd, "cost", lambda conv, *, taps_as_inputs: float(taps_as_inputs))
    proto = generator(SMALL)
    points = random((1, SMALL.keypoints, 3), 1) * np.float32(0.2)
    feeds = {
        "feature_3d": random((1, SMALL.feature_channels, *SMALL.volume)),
        "kp_source": points,
        "kp_driving": points + random(points.shape, 2) * np.float32(0.05),
    }
    graph = prepare(ir.from_proto(proto))
    outcomes = run_passes(graph, (grid_sample("gather"), *CPU_PASSES, *CPU_FINISH))
    assert not [node for node in graph.graph if sampling.is_volumetric(node)]
    assert outcomes["fold-upsample"].rewritten
    assert bool(outcomes["winograd"].rewritten) is eager
    assert_same(run(proto, feeds), run(graph, feeds), tolerance=2e-4)
