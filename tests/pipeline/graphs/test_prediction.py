"""How many processes fit in a memory, with made-up figures."""

from __future__ import annotations

import subprocess
import sys

import pytest

from pipeline.errors import GraphError
from pipeline.graphs.prediction import Prediction, processes_that_fit, sessions_that_fit

ONE = Prediction(weights=100, loading=20, activations=60, workspace=5, runtime=15)


def test_workers_that_fit() -> None:
    assert (ONE.session, ONE.total) == (185, 200)
    assert ONE.to_json()["total"] == 200
    assert sessions_that_fit([ONE], 1000) == 4
    assert sessions_that_fit([ONE, ONE], 1000, share=1.0) == 2  # 385 a worker: the runtime counts once
    assert sessions_that_fit([ONE], 100) == 0
    with pytest.raises(GraphError, match="at least one model"):
        sessions_that_fit([], 1000)


def test_processes_that_fit() -> None:
    assert processes_that_fit(100, 1000) == 8
    assert processes_that_fit(100, 1000, share=1.0) == 10
    assert processes_that_fit(801, 1000) == 0


@pytest.mark.parametrize(("size", "share"), [(100, 0.0), (100, 1.1), (0, 0.8)])
def test_figures_out_of_range_are_refused(size: int, share: float) -> None:
    with pytest.raises(GraphError, match="share"):
        processes_that_fit(size, 1000, share=share)


def test_workers_need_no_onnx_for_it() -> None:
    code = "import sys; sys.modules['onnx'] = sys.modules['onnx_ir'] = None; import workers.capacity"
    subprocess.run([sys.executable, "-c", code], check=True)
