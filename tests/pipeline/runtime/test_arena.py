"""The arena that sessions share gives back what nobody needs any more."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from pipeline.machine import memory_resident
from pipeline.packs.embedded.authoring.writer import Graph
from pipeline.packs.manifest import ModelSpec, Tensor
from pipeline.runtime.ladder import Ladder
from pipeline.runtime.options import RuntimeOptions
from pipeline.runtime.recovery import ManagedModel
from pipeline.runtime.residents import Residents

MIB = 1 << 20
LADDER = Ladder(RuntimeOptions(threads=1))


def model(path: Path, wide: int) -> ManagedModel:
    """y = 2 x through values of `wide` bytes."""
    graph = Graph("wide")
    value = graph.input("x", [1, 64]).unsqueeze(2).expand(1, 64, wide // 256) * 2
    graph.output("y", value.abs().mean(2), [1, 64])
    graph.save(path)
    inputs, outputs = {"x": Tensor("x", (1, 64), "float32")}, {"y": Tensor("y", (1, 64), "float32")}
    return ManagedModel(path, ModelSpec(path.name, inputs, outputs, {}), LADDER, Residents(), None, 0)


def taken() -> int:
    found = memory_resident()
    assert found is not None
    return found


def test_after_a_session_is_let_go_its_memory_goes_back(tmp_path: Path) -> None:
    feed = {"x": np.ones((1, 64), np.float32)}
    small, large = model(tmp_path / "small.onnx", MIB), model(tmp_path / "large.onnx", 96 * MIB)
    small.run(feed)
    before = taken()
    for _ in range(2):
        large.run(feed)
    held = taken() - before
    assert held > 150 * MIB  # two values at a time
    large.close()
    small.run(feed)
    assert taken() - before < 0.2 * held


def test_sessions_take_turns_in_one_arena(tmp_path: Path) -> None:
    feed = {"x": np.ones((1, 64), np.float32)}
    models = [model(tmp_path / f"{number}.onnx", 64 * MIB) for number in range(3)]
    models[0].run(feed)
    before = taken()
    for each in models:
        each.run(feed)
    assert taken() - before < 16 * MIB
