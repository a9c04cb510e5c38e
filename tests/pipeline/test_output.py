"""Where a film may appear, told before any work."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pipeline import OutputError
from pipeline.render import check_film, check_output


def test_bad_places_for_the_film(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="is a folder"):
        check_output(tmp_path)
    with pytest.raises(OutputError, match=r"there is no folder .*missing; create it"):
        check_output(tmp_path / "missing" / "film.webm")
    (tmp_path / "file").touch()
    with pytest.raises(OutputError, match="that is a file"):
        check_output(tmp_path / "file" / "film.webm")
    os.mkfifo(tmp_path / "pipe")
    for device in (tmp_path / "pipe", Path(os.devnull)):
        with pytest.raises(OutputError, match="device or a pipe"):
            check_output(device)


def test_a_folder_that_cannot_be_written_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: False)  # for the superuser every folder is writable
    with pytest.raises(OutputError, match="cannot be written to; give another place"):
        check_output(tmp_path / "film.webm")


def test_an_input_whose_name_cannot_be_is_no_fault_of_the_film_s(tmp_path: Path) -> None:
    (tmp_path / "film.webm").touch()
    assert check_film(tmp_path / "film.webm", "x" * 300) == tmp_path / "film.webm"


@pytest.mark.parametrize("name", ["film.mp4", "film.MOV", "film.mkv", "film.gif", "film.png", "film.wav"])
def test_a_name_of_another_format(tmp_path: Path, name: str) -> None:
    with pytest.raises(OutputError, match=r"would be a WebM by another format's name; call it film\.webm"):
        check_film(tmp_path / name)


@pytest.mark.parametrize("name", ["film.webm", "film.WEBM", "film", "film.part", "talk.2", "film.mp4.new"])
def test_names_of_films(tmp_path: Path, name: str) -> None:
    assert check_film(tmp_path / name) == tmp_path / name
