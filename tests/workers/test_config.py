"""Numbers that a worker takes from its environment, refused before it begins."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from pipeline.cli.main import main
from pipeline.errors import SettingsError
from workers.config import grace, process_memory, threads_per_process


@pytest.mark.parametrize(
    ("name", "read", "text", "value"),
    [
        ("TALKREEL_GRACE", grace, "0", 0),
        ("TALKREEL_GRACE", grace, "", 25),
        ("TALKREEL_PROCESS_MEMORY", process_memory, "512", 512),
        ("TALKREEL_THREADS", threads_per_process, "3", 3),
    ],
)
def test_numbers_are_read(
    name: str, read: Callable[[], int], text: str, value: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, text)
    assert read() == value


@pytest.mark.parametrize(
    ("name", "read"),
    [
        ("TALKREEL_GRACE", grace),
        ("TALKREEL_PROCESS_MEMORY", process_memory),
        ("TALKREEL_THREADS", threads_per_process),
    ],
)
@pytest.mark.parametrize("text", ["x", "-1", "1e9", "99999999999"])
def test_what_is_none_is_refused(
    name: str, read: Callable[[], int], text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, text)
    with pytest.raises(SettingsError, match=f"{name} '{text}' is not a whole number from"):
        read()


def test_a_worker_does_not_begin_with_them(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "file"
    file.touch()
    for name, text, told in (
        ("TALKREEL_GRACE", "soon", "TALKREEL_GRACE 'soon' is not a whole number from 0 to 86400"),
        ("TALKREEL_FILM_HOURS", "many", "TALKREEL_FILM_HOURS 'many' is not a number of hours"),
        ("TALKREEL_FILMS", str(file), f"films cannot be written to {file} (File exists)"),
    ):
        with monkeypatch.context() as changed:
            changed.setenv(name, text)
            assert main(["worker"]) == 2
        assert told in capsys.readouterr().err
