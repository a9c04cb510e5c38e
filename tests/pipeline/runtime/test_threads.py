"""Threads: within the cores that a process may use, and still when there is nothing to do."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from pipeline.packs.embedded.authoring.writer import Graph

CODE = """
import os, sys, time
import numpy as np
from pathlib import Path
from pipeline.packs.manifest import ModelSpec, Tensor
from pipeline.runtime.ladder import Ladder
from pipeline.runtime.options import RuntimeOptions, cores_allowed
from pipeline.runtime.providers import CPU
from pipeline.runtime.session import Session

threads = int(sys.argv[2]) or None
spec = ModelSpec("wide.onnx", {"x": Tensor("x", (512, 512), "float32")}, {"y": Tensor("y", (512, 512), "float32")}, {})
session = Session(Path(sys.argv[1]), spec, Ladder(RuntimeOptions(threads, (CPU,))))
for _ in range(3):
    session.run({"x": np.ones((512, 512), np.float32)})
begun = sum(os.times()[:2])
time.sleep(0.5)  # the time in which a spinning thread would burn a core
print(cores_allowed(), len(os.listdir("/proc/self/task")), round((sum(os.times()[:2]) - begun) * 100))
"""


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    graph = Graph("wide")
    graph.output("y", graph.input("x", [512, 512]) @ graph.constant(np.eye(512, dtype=np.float32)), [512, 512])
    path = tmp_path_factory.mktemp("threads") / "wide.onnx"
    graph.save(path)
    return path


def run(model: Path, threads: int, cores: set[int]) -> tuple[list[int], str]:
    """Cores allowed, threads there are, hundredths of a second of processor time used while idle; and what it said."""
    done = subprocess.run(
        [sys.executable, "-c", CODE, str(model), str(threads)],
        capture_output=True, text=True, check=True, preexec_fn=lambda: os.sched_setaffinity(0, cores),
    )  # fmt: skip
    return [int(word) for word in done.stdout.split()], done.stderr


def test_a_cpuset_bounds_the_threads_and_breaks_nothing(model: Path) -> None:
    """ONNX Runtime pins threads to cores when it counts them itself, and those outside the set are errors."""
    core = min(os.sched_getaffinity(0))
    (cores, alone, _), said = run(model, 0, {core})
    assert cores == 1
    (_, four, idle), more = run(model, 4, {core})
    assert four == alone + 3
    assert said == more == ""
    assert idle <= 2, "threads spin between runs"
