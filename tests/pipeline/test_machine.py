"""The memory that a process may use: the machine's, or a control group's limit."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.machine import memory_allowed, memory_bytes


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    ("membership", "name", "folder"),
    [
        ("0::/outer/own\n", "memory.max", "."),
        ("9:name=systemd:/\n4:cpu,memory:/outer/own\n0::/\n", "memory.limit_in_bytes", "memory"),
    ],
    ids=["version-2", "version-1"],
)
def test_the_least_limit_around_the_process(membership: str, name: str, folder: str, tmp_path: Path) -> None:
    groups, file = tmp_path / "groups", write(tmp_path / "membership", membership)
    assert memory_allowed(groups, file) == memory_bytes()
    write(groups / folder / name, "3000000\n")  # all that a container sees: its own group at the top
    assert memory_allowed(groups, file) == 3000000
    write(groups / folder / "outer" / name, "2000000\n")
    write(groups / folder / "outer" / "own" / name, "max\n")
    assert memory_allowed(groups, file) == 2000000
    write(groups / folder / "outer" / "own" / name, "9223372036854771712\n")
    assert memory_allowed(groups, file) == 2000000
    write(groups / folder / "other" / name, "1000\n")
    write(tmp_path / name, "1000\n")
    assert memory_allowed(groups, file) == 2000000


def test_without_groups_it_is_the_machines(tmp_path: Path) -> None:
    assert memory_allowed(tmp_path, tmp_path / "missing") == memory_bytes()
    assert 0 < memory_allowed() <= memory_bytes()
