"""Memory that ONNX Runtime takes for a model, measured in a process of its own (Linux)."""

from __future__ import annotations

import ctypes
import json
import mmap
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import GraphError
from .memory import MemoryOptions

STATUS = Path("/proc/self/status")
CLEAR = Path("/proc/self/clear_refs")
MAPS = Path("/proc/self/maps")


@dataclass(frozen=True)
class Measured:
    """Bytes of resident memory that the session added to the process."""

    loading: int
    """The most while the session was made: the file's bytes and the weights are both there for a moment."""
    session: int
    """Kept by the session before its first run: weights, and their copies packed for the kernels."""
    peak: int
    """The most while it ran, weights included."""


def measure_peak(
    path: str | Path, feeds: Mapping[str, NDArray[Any]], options: MemoryOptions | None = None, runs: int = 3
) -> Measured:
    """Run a model on the CPU in a child process, and say how much memory it took.

    Args:
        path: the .onnx file.
        feeds: inputs by name.
        options: settings of the session.
        runs: ONNX Runtime allocates value by value on the first run and by its plan from the second on.

    Raises:
        GraphError: the child failed; its last line is in the message.
    """
    with tempfile.TemporaryDirectory() as folder:
        inputs = Path(folder) / "feeds.npz"
        np.savez(inputs, allow_pickle=False, **feeds)
        order = {"path": str(path), "feeds": str(inputs), "runs": runs, "options": asdict(options or MemoryOptions())}
        child = subprocess.run(
            [sys.executable, "-m", __name__, json.dumps(order)], capture_output=True, text=True, check=False
        )
    if child.returncode:
        lines = child.stderr.strip().splitlines() or [f"exit status {child.returncode}"]
        raise GraphError(f"{path} could not be measured: {lines[-1]}")
    return Measured(**json.loads(child.stdout))


def _resident(field: str) -> int:
    line = next(line for line in STATUS.read_text().splitlines() if line.startswith(f"{field}:"))
    return int(line.split()[1]) * 1024


def _touch_libraries() -> None:
    """Have the libraries' files resident. How much of them the kernel maps around a fault depends on what else the
    machine has read; only what is allocated after this shows in the resident size."""
    for line in MAPS.read_text().splitlines():
        span, access, _, _, _, *name = line.split(maxsplit=5)
        if name and ".so" in name[0] and "r" in access:
            start, end = (int(address, 16) for address in span.split("-"))
            for page in range(start, end, mmap.PAGESIZE):
                ctypes.c_char.from_address(page).value  # noqa: B018, reading it is what maps it


def _child(order: Mapping[str, Any]) -> Measured:
    import onnxruntime

    from .memory import session_options

    with np.load(order["feeds"]) as stored:
        feeds = {name: stored[name] for name in stored.files}
    settings = session_options(MemoryOptions(**order["options"]))
    _touch_libraries()
    before = _resident("VmRSS")
    CLEAR.write_text("5")  # the high-water mark begins anew
    session = onnxruntime.InferenceSession(order["path"], settings, providers=["CPUExecutionProvider"])
    loading, kept = _resident("VmHWM"), _resident("VmRSS")
    CLEAR.write_text("5")
    for _ in range(order["runs"]):
        session.run(None, feeds)
    return Measured(loading - before, kept - before, _resident("VmHWM") - before)


if __name__ == "__main__":
    print(json.dumps(asdict(_child(json.loads(sys.argv[1])))))
