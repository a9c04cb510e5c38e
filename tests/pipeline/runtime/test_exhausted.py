"""Out of memory for real, in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tests.conftest import ROOT


def test_a_run_without_memory_is_repeated_once_and_then_an_error(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.pipeline.runtime.exhausted", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["repaired"] == found["afterwards"] == 2
    assert found["recoveries"] == ["wide.onnx was opened again on cpu and the run repeated: out of memory"]
    assert found["fault"] == "out of memory"
    assert "Failed to allocate memory for requested buffer of size 268435456" in found["message"]
    assert done.stderr == ""  # nothing but what we say
