"""Films in Redis, in a folder, and at an fsspec address."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pipeline.errors import OutputError, SettingsError
from workers.artifacts import MemoryStore
from workers.errors import ArtifactMissingError
from workers.films import Films, fetch_film


@pytest.fixture
def film(tmp_path: Path) -> Path:
    path = tmp_path / "film.webm"
    path.write_bytes(b"film")
    return path


@pytest.fixture(params=["", "films", "file://films", "memory://films"])
def films(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Films, MemoryStore]:
    place = str(request.param).replace("films", f"{tmp_path}/films") if "memory" not in request.param else request.param
    store = MemoryStore()
    return Films.read(store, {"TALKREEL_FILMS": place}), store


def test_a_film_is_fetched_by_its_address(films: tuple[Films, MemoryStore], film: Path) -> None:
    places, store = films
    address = places.put("job", "film:x", film)
    assert fetch_film(store, address) == b"film"
    assert places.put("job", "film:x", film) == address
    places.sweep()
    assert fetch_film(store, address) == b"film"
    places.delete("job")
    store.release("job")
    with pytest.raises(ArtifactMissingError):
        fetch_film(store, address)
    places.delete("job")


def test_old_films_are_swept_from_a_folder(tmp_path: Path, film: Path) -> None:
    folder = tmp_path / "films"
    films = Films.read(MemoryStore(), {"TALKREEL_FILMS": str(folder), "TALKREEL_FILM_HOURS": "0.5"})
    films.put("old", "film:x", film)
    films.put("new", "film:y", film)
    os.utime(folder / "old.webm", (1, 1))
    (folder / "gone.webm").symlink_to("deleted meanwhile")
    films.sweep()
    assert sorted(path.name for path in folder.iterdir()) == ["gone.webm", "new.webm"]


def test_old_films_are_swept_from_an_address(film: Path) -> None:
    films = Films.read(MemoryStore(), {"TALKREEL_FILMS": "memory://old", "TALKREEL_FILM_HOURS": "0.0000001"})
    address = films.put("job", "film:x", film)
    while True:
        films.sweep()
        try:
            fetch_film(MemoryStore(), address)
        except ArtifactMissingError:
            break


def test_the_lifetime_is_that_of_the_setting(film: Path) -> None:
    now = [0.0]
    store = MemoryStore(clock=lambda: now[0])
    films = Films.read(store, {"TALKREEL_FILM_HOURS": "2"})
    address = films.put("job", "film:x", film)
    now[0] = 7100.0
    assert fetch_film(store, address) == b"film"
    now[0] = 7300.0
    with pytest.raises(ArtifactMissingError):
        fetch_film(store, address)


@pytest.mark.parametrize("hours", ["soon", "0", "-1", "nan", "1e9"])
def test_hours_that_are_none_are_refused(hours: str) -> None:
    with pytest.raises(SettingsError, match="TALKREEL_FILM_HOURS"):
        Films.read(MemoryStore(), {"TALKREEL_FILM_HOURS": hours})


def test_an_address_of_a_kind_that_is_not_there_is_refused() -> None:
    with pytest.raises(SettingsError, match=r"no-such-kind://films cannot be reached.*fsspec"):
        Films.read(MemoryStore(), {"TALKREEL_FILMS": "no-such-kind://films"})


def test_a_folder_that_cannot_be_written_is_one_line(tmp_path: Path, film: Path) -> None:
    (tmp_path / "file").touch()
    films = Films.read(MemoryStore(), {"TALKREEL_FILMS": str(tmp_path / "file")})
    with pytest.raises(SettingsError, match=r"films cannot be written to .*file \(.*TALKREEL_FILMS"):
        films.check()
    with pytest.raises(OutputError, match="TALKREEL_FILMS"):
        films.put("job", "film:x", film)
