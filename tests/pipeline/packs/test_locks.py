"""One process at a time, and a lock that ends with its holder."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from pipeline.errors import OutputError
from pipeline.packs.locks import locked
from tests.pipeline.packs.tiny_pack import ROOT

HOLD = """
import sys
from pathlib import Path
from pipeline.packs.locks import locked
with locked(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_a_killed_holder_lets_go(tmp_path: Path) -> None:
    """Who waits is told so once, and goes on when the holder dies."""
    path = tmp_path / "locks" / "one"
    command = [sys.executable, "-c", HOLD, str(path)]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        waited = []

        def kill() -> None:
            waited.append(True)
            holder.kill()

        with locked(path, kill):
            assert waited == [True]
            assert holder.wait() == -signal.SIGKILL
    with locked(path, kill):
        assert waited == [True]


def test_where_no_lock_can_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match="cannot be written"), locked(tmp_path / "file" / "lock"):
        pass
