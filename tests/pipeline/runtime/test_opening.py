"""What the manifest says of a graph decides how its session is opened."""

from __future__ import annotations

import onnxruntime
import pytest

from pipeline.packs.store import open_pack
from pipeline.runtime.ladder import Ladder
from pipeline.runtime.options import RuntimeOptions

LEVELS = onnxruntime.GraphOptimizationLevel


@pytest.mark.parametrize(
    ("model", "level"), [("portrait", LEVELS.ORT_DISABLE_ALL), ("generator_256", LEVELS.ORT_ENABLE_ALL)]
)
def test_a_graph_that_runs_once_a_portrait_is_opened_as_it_is_written(
    model: str, level: onnxruntime.GraphOptimizationLevel
) -> None:
    pack = open_pack()
    spec = pack.manifest.model(model)
    session, _ = Ladder(RuntimeOptions(threads=1)).open(pack.model_path(spec), spec)
    assert session.get_session_options().graph_optimization_level == level
