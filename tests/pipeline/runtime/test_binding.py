"""Fixed inputs: kept where the model runs while their owner lives."""

from __future__ import annotations

import gc
from pathlib import Path

import numpy as np
import pytest

from pipeline.packs.embedded.authoring.writer import Graph
from pipeline.packs.manifest import ModelSpec, Tensor
from pipeline.runtime.binding import DeviceValues, Fixed
from pipeline.runtime.ladder import Ladder
from pipeline.runtime.options import RuntimeOptions
from pipeline.runtime.providers import CPU, Rung
from pipeline.runtime.session import Session


class Owner:
    """What fixed inputs belong to."""


def test_on_the_cpu_nothing_is_copied() -> None:
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    owner, values = Owner(), DeviceValues(CPU)
    held = values.of(Fixed(owner, {"feature": array}))["feature"]
    assert held.data_ptr() == array.ctypes.data
    assert held.device_name() == "cpu"


def test_an_owner_s_values_are_made_once_and_go_with_it() -> None:
    values = DeviceValues(CPU)
    first, second = Owner(), Owner()
    array = np.ones((2, 2), np.float32)
    held = values.of(Fixed(first, {"feature": array}))
    assert values.of(Fixed(first, {"feature": array})) is held
    assert values.of(Fixed(second, {"feature": array})) is not held
    assert len(values) == 2
    del first
    gc.collect()
    assert len(values) == 1


def test_an_owner_that_outlives_the_session_holds_no_values() -> None:
    owner, values = Owner(), DeviceValues(CPU)
    values.of(Fixed(owner, {"feature": np.ones(3, np.float32)}))
    del values
    del owner  # its end finds nothing to drop


@pytest.mark.parametrize(
    ("rung", "memory"),
    [("cpu", ("cpu", 0)), ("cuda", ("cuda", 0)), ("cuda:1", ("cuda", 1)), ("openvino:GPU", ("cpu", 0))],
)
def test_where_a_rung_s_values_are(rung: str, memory: tuple[str, int]) -> None:
    kind, _, device = rung.partition(":")
    assert Rung(kind, device or None).memory == memory


@pytest.fixture
def session(tmp_path: Path) -> Session:
    graph = Graph("sum")
    feature, moved = graph.input("f", [2, 3]), graph.input("m", [1, 3])
    graph.output("y", feature * 2 + moved, [2, 3])
    graph.output("z", feature - moved, [2, 3])
    graph.save(tmp_path / "sum.onnx")
    inputs = {"feature": Tensor("f", (2, 3), "float32"), "moved": Tensor("m", (1, 3), "float32")}
    outputs = {"difference": Tensor("z", (2, 3), "float32"), "sum": Tensor("y", (2, 3), "float32")}
    spec = ModelSpec("sum.onnx", inputs, outputs, {})
    return Session(tmp_path / "sum.onnx", spec, Ladder(RuntimeOptions(threads=1)))


def test_bound_runs_give_what_plain_runs_give(session: Session) -> None:
    chance = np.random.default_rng(0)
    feature = chance.normal(size=(3, 2)).astype(np.float32).T  # not contiguous
    owner = Owner()
    for _ in range(3):
        moved = chance.normal(size=(3, 1)).astype(np.float32).T
        bound = session.run({"moved": moved}, Fixed(owner, {"feature": feature}))
        plain = session.run({"feature": feature, "moved": moved})
        assert list(bound) == ["difference", "sum"]
        for role in bound:
            np.testing.assert_array_equal(bound[role], plain[role])


def test_results_are_not_written_over_by_the_next_run(session: Session) -> None:
    owner, feature = Owner(), np.ones((2, 3), np.float32)
    first = session.run({"moved": np.ones((1, 3), np.float32)}, Fixed(owner, {"feature": feature}))["sum"]
    copy = first.copy()
    session.run({"moved": np.full((1, 3), 9, np.float32)}, Fixed(owner, {"feature": feature}))
    np.testing.assert_array_equal(first, copy)
