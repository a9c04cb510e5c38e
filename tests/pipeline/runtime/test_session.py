"""Sessions: tensors by role, checked against the graph, errors in one line."""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from pipeline.errors import ModelError, PackError, RuntimeMissingError
from pipeline.packs.embedded.authoring.writer import Graph
from pipeline.packs.manifest import ModelSpec, Tensor
from pipeline.packs.store import open_pack
from pipeline.runtime.ladder import Ladder
from pipeline.runtime.models import Models
from pipeline.runtime.options import RuntimeOptions
from pipeline.runtime.providers import CPU
from pipeline.runtime.session import Session

SPEC = ModelSpec(
    "double.onnx",
    {"value": Tensor("x", (1, 3), "float32")},
    {"result": Tensor("y", (1, 3), "float32")},
    {},
)
OPTIONS = RuntimeOptions(threads=1)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    graph = Graph("double")
    graph.output("y", graph.input("x", [1, 3]) * 2, [1, 3])
    graph.save(tmp_path / "double.onnx")
    return tmp_path / "double.onnx"


def test_runs_by_role(path: Path) -> None:
    session = Session(path, SPEC, Ladder(OPTIONS))
    outputs = session.run({"value": np.array([[1, 2, 3]], np.float32)})
    np.testing.assert_array_equal(outputs["result"], [[2, 4, 6]])
    assert session.place.rung == CPU
    assert session.side("value") == 3


def test_a_file_that_is_no_model(tmp_path: Path) -> None:
    (tmp_path / "bad.onnx").write_bytes(b"not a model")
    with pytest.raises(ModelError, match=r"bad\.onnx does not load"):
        Session(tmp_path / "bad.onnx", SPEC, Ladder(OPTIONS))


def test_a_failing_run_is_one_line(path: Path) -> None:
    with pytest.raises(ModelError, match="failed while running") as caught:
        Session(path, SPEC, Ladder(OPTIONS)).run({"value": np.zeros((2, 5), np.float32)})
    assert "\n" not in str(caught.value)


def test_without_onnxruntime_the_extra_is_named(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(RuntimeMissingError, match=r"talkreel\[cpu\]"):
        Session(path, SPEC, Ladder(OPTIONS))


def test_a_build_that_does_not_import_is_not_called_missing(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken:
        def find_spec(self, name: str, *_: object) -> None:
            if name == "onnxruntime":
                raise ImportError("libcudart.so.12: cannot open shared object file")

    monkeypatch.delitem(sys.modules, "onnxruntime")
    monkeypatch.setattr(sys, "meta_path", [Broken(), *sys.meta_path])
    with pytest.raises(RuntimeMissingError, match=r"does not load.*libcudart"):
        Session(path, SPEC, Ladder(OPTIONS))


def test_where_the_system_knows_no_cpuset_all_cores_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "sched_getaffinity")
    assert RuntimeOptions().thread_count == os.cpu_count()


def test_models_are_opened_once() -> None:
    models = Models(open_pack(), OPTIONS)
    assert models.get("denoiser") is models.get("denoiser")
    assert "stitching" not in models
    with pytest.raises(PackError, match="stitching"):
        models.get("stitching")
    assert models.second_try("generator_256") is models.get("generator_256")


def test_a_run_can_be_ended_from_another_thread(tmp_path: Path) -> None:
    """A long chain of nodes is ended in its midst; the session still works afterwards."""
    graph = Graph("long")
    value = graph.input("x", [1, 3])
    wide = value.unsqueeze(2).expand(200, 3, 20000)
    for _ in range(300):
        wide = (wide * 1.0001).abs() + 0.0001
    graph.output("y", wide.mean(0, 2).reshape(1, 3), [1, 3])
    graph.save(tmp_path / "long.onnx")
    session = Session(tmp_path / "long.onnx", SPEC, Ladder(OPTIONS))
    started = threading.Event()
    failures: list[ModelError] = []

    def run() -> None:
        started.set()
        try:
            session.run({"value": np.ones((1, 3), np.float32)})
        except ModelError as error:
            failures.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    started.wait()
    while thread.is_alive():
        session.terminate()
        thread.join(0.01)
    assert len(failures) == 1
    assert session._running == set()
