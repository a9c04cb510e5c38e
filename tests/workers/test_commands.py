"""The fleet's commands as a user has them: output, JSON, exit codes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pipeline.cli.main import main
from pipeline.errors import OutputError
from tests.workers.fleet import PORTRAIT, WAIT, TestFleet, cut_voice, made_here, running_fleet, wait_until
from workers.client import Job
from workers.commands import submit

FAST = ["--preset", "preview", "--frame", "crop", "--fps", "5"]


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestFleet]:
    with running_fleet(tmp_path_factory.mktemp("fleet"), "one", odd=True) as made:
        yield made


@pytest.fixture(scope="module")
def voice(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return cut_voice(tmp_path_factory.mktemp("voice") / "voice.wav", 1)


class Shell:
    """Runs a command against the fleet and keeps what it printed."""

    def __init__(self, fleet: TestFleet, capsys: pytest.CaptureFixture[str]) -> None:
        self.url = ["--url", fleet.server.url]
        self.capsys = capsys

    def __call__(self, *words: str | Path) -> tuple[int, str, str]:
        code = main([*map(str, words), *self.url])
        printed = self.capsys.readouterr()
        return code, printed.out.strip(), printed.err.strip()

    def json(self, *words: str | Path) -> Any:
        code, out, err = self(*words, "--json")
        assert code == 0, err
        return json.loads(out)


@pytest.fixture
def shell(fleet: TestFleet, capsys: pytest.CaptureFixture[str]) -> Shell:
    return Shell(fleet, capsys)


def test_submit_and_wait_is_render(shell: Shell, voice: Path, tmp_path: Path) -> None:
    code, out, err = shell("submit", PORTRAIT, voice, *FAST, "--wait", "-o", tmp_path / "film.webm")
    assert (code, out, err) == (0, str(tmp_path / "film.webm"), "")
    assert (tmp_path / "film.webm").read_bytes() == made_here(voice, fps="5", seed=0)


def test_a_job_step_by_step(shell: Shell, voice: Path, tmp_path: Path) -> None:
    code, job, _ = shell("submit", PORTRAIT, voice, *FAST, "--seed", "1", "--priority", "high")
    assert code == 0
    code, out, _ = shell("watch", job, "--quiet")
    assert (code, out) == (0, f"{job} is done, 1.00 s of film")
    status = shell.json("status", job)
    assert (status["job"], status["state"], status["priority"]) == (job, "done", "high")
    assert status["frames"] == {"done": 5, "total": 5}
    assert status["stalled"] == []
    code, out, _ = shell("fetch", job, "-o", tmp_path / "film.webm")
    assert code == 0
    assert out == f"{tmp_path / 'film.webm'}: {(tmp_path / 'film.webm').stat().st_size} bytes"
    assert job in shell("jobs")[1]
    assert job in [entry["job"] for entry in shell.json("jobs")]
    report = shell.json("watch", job)
    assert report["film"]["frames"] == 5
    assert report["peak_memory"] == max(stage["peak_memory"] for stage in report["stages"].values()) > 50e6
    assert shell("forget", job)[:2] == (0, f"{job} forgotten")
    code, _, err = shell("status", job)
    assert code == 2
    assert f"there is no job {job}" in err


def test_cancel_and_what_stands_still(fleet: TestFleet, shell: Shell, voice: Path) -> None:
    fleet.hold("hold-motion")
    job = shell("submit", PORTRAIT, voice, *FAST, "--seed", "2")[1]
    fleet.wait_held("hold-motion")
    status = shell.json("status", job)
    assert status["state"] == "running"
    assert status["steps"]["motion"] == {"running": 1}
    assert shell("cancel", job)[:2] == (0, f"{job} cancelled")
    fleet.let_go("hold-motion")
    code, _, err = shell("watch", job)
    assert code == 4
    assert err == f"talkreel: job {job} was cancelled"
    wait_until(lambda: shell.json("status", job)["bytes"] == {}, WAIT, fleet.standing)


def test_who_is_interrupted_while_waiting_is_told_the_job(
    shell: Shell, voice: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(job: Any, *, quiet: bool) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(submit, "follow", interrupted)
    code, _, err = shell("submit", PORTRAIT, voice, *FAST, "--seed", "3", "--wait")
    job = shell.json("jobs")[-1]["job"]
    assert code == 130
    assert err.splitlines()[0] == f"job {job} goes on without us; talkreel cancel {job} stops it"
    assert shell("cancel", job)[0] == 0


def test_who_cannot_fetch_a_finished_film_is_told_the_job(
    fleet: TestFleet, shell: Shell, voice: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(job: Any, path: Path) -> None:
        raise OutputError(f"{path} cannot be written")

    monkeypatch.setattr(submit, "follow", lambda job, *, quiet: {"notes": []})
    monkeypatch.setattr(Job, "result", full)
    code, _, err = shell("submit", PORTRAIT, voice, *FAST, "--seed", "4", "--wait", "-o", tmp_path / "film.webm")
    job = shell.json("jobs")[-1]["job"]
    assert code == 2
    assert err.splitlines()[0] == f"job {job} is done; fetch its film: talkreel fetch {job} -o FILE.webm"
    assert shell("cancel", job)[0] == 0


def test_errors_are_one_line(shell: Shell, voice: Path, tmp_path: Path) -> None:
    for words, text in (
        (["submit", PORTRAIT, tmp_path / "gone.wav"], "gone.wav"),
        (["submit", PORTRAIT, voice, "--strength", "7"], "strength 7.0 is out of range"),
        (["submit", PORTRAIT, voice, "--deadline", "-1"], "deadline -1.0 is out of range"),
        (["submit", PORTRAIT, voice, "--wait", "-o", tmp_path / "no" / "film.webm"], "there is no folder"),
        (["submit", PORTRAIT, voice, "--wait", "-o", voice], "is an input too"),
        (["submit", PORTRAIT, voice, "-o", tmp_path / "film.webm"], "--output is written only with --wait"),
        (["fetch", "nothing", "-o", tmp_path / "film.webm"], "there is no job nothing"),
    ):
        code, out, err = shell(*words)
        assert (code, out) == (2, "")
        assert text in err
        assert len(err.splitlines()) == 1


def test_a_server_that_is_not_there(voice: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["submit", str(PORTRAIT), str(voice), "--url", "redis://127.0.0.1:1/0"]) == 3
    assert "redis://127.0.0.1:1/0 cannot be reached" in capsys.readouterr().err
