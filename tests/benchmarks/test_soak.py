"""The soak, scaled down."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tests.conftest import ROOT


def test_memory_does_not_grow_with_the_key_frames(tmp_path: Path) -> None:
    result = tmp_path / "result.json"
    command = [sys.executable, "-m", "tests.benchmarks.soak", "--small", "--frames", "300", "-o", str(result)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    sizes = json.loads(result.read_text())["bytes"]
    assert len(sizes) == 300
    assert min(sizes) > 50 << 20
