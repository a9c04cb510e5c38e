"""Running a graph in memory."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import onnx_ir as ir

from ..model import save
from ..runner import Runner, RunOptions


@contextmanager
def opened(model: ir.Model, threads: int = 2) -> Iterator[Runner]:
    """A session of a model, on the CPU.

    Raises:
        ModelError: ONNX Runtime does not load it.
    """
    with tempfile.TemporaryDirectory(prefix="talkreel-") as folder:
        path = Path(folder) / "model.onnx"
        save(model, path)
        yield Runner(path, RunOptions(threads=threads))


def weight_bytes(model: ir.Model) -> int:
    """Bytes of a graph's constants."""
    return sum(
        v.const_value.nbytes for v in model.graph.initializers.values() if v.const_value is not None and v.uses()
    )
