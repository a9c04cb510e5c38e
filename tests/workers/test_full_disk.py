"""A worker whose disk is full while it writes the film, and a client's."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.errors import OutputError
from pipeline.whole_file import write_whole
from tests.small_disk import small_disk
from tests.workers.fleet import WAIT, cut_voice, running_fleet, wait_nothing_left, wait_until
from workers.errors import JobFailedError


def test_a_workers_disk_is_full(tmp_path: Path) -> None:
    """The job ends with that reason and keeps nothing, neither in Redis nor on the disk; the next job elsewhere is
    done."""
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    voice = cut_voice(tmp_path / "voice.wav", 0.5)
    environment = {"TALKREEL_TEST_ROOM": "2000", "TMPDIR": str(scratch)}
    with running_fleet(tmp_path, "full", odd=True, environment=environment) as fleet:
        job = fleet.submit(voice)
        with pytest.raises(JobFailedError, match=r"in stage mux: on \S+, .*film\.webm cannot be written: .* room"):
            job.wait(timeout=WAIT)
        wait_until(lambda: not job.status()["bytes"], WAIT, lambda: str(job.status()))
        wait_nothing_left(fleet)
        assert not [path for path in scratch.rglob("*") if "film" in path.name]
        fleet.workers[0].stop()
        fleet.start("roomy", odd=True)
        well = fleet.submit(voice)
        well.wait(timeout=WAIT)
        assert well.result()


def test_a_clients_disk_is_full(tmp_path: Path) -> None:
    with small_disk(100), pytest.raises(OutputError, match=r"film\.webm cannot be written: File too large"):
        write_whole(tmp_path / "film.webm", bytes(1000))
    assert list(tmp_path.iterdir()) == []
