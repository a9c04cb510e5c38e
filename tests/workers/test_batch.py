"""Lists of jobs: read, worked through, taken up again."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pipeline.cli.main import main
from pipeline.errors import SettingsError
from tests.workers.fleet import PORTRAIT, SETTINGS, WAIT, TestFleet, cut_voice, made_here, running_fleet, wait_until
from workers.batch_list import read_list


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestFleet]:
    folder = tmp_path_factory.mktemp("fleet")
    with running_fleet(folder, "one", odd=True, environment={"TALKREEL_FILMS": str(folder / "films")}) as made:
        yield made


def test_csv_and_json_lines_say_the_same(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(
        "portrait,audio,output,fps,seed,background,synthetic_note,priority,guidance\n"
        'p.png,"a, b.wav",a.webm,29.97,7,#ff0000,no,low,\n'
        "\n"
        "p.png,b.wav,b.webm\n"
    )
    (tmp_path / "a.jsonl").write_text(
        '{"portrait": "p.png", "audio": "a, b.wav", "output": "a.webm", "fps": "30000/1001", "seed": 7,'
        ' "background": [255, 0, 0], "synthetic_note": false, "priority": "low", "guidance": null}\n'
        "\n"
        '{"portrait": "p.png", "audio": "b.wav", "output": "b.webm"}\n'
    )
    first, second = read_list(tmp_path / "a.csv"), read_list(tmp_path / "a.jsonl")
    assert [(r.portrait, r.audio, r.output, r.settings) for r in first] == [
        (r.portrait, r.audio, r.output, r.settings) for r in second
    ]
    assert [r.digest for r in first] == [r.digest for r in second]
    assert first[0].audio == tmp_path / "a, b.wav"
    assert first[1].settings == {}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("portrait,audio\np,a\n", r"list\.csv:2: output missing"),
        ("portrait,audio,output,sped\np,a,o,1\n", "sped unknown"),
        ("portrait,audio,output,fps\np,a,o,fast\n", r"list\.csv:2: fps is 'fast'"),
        ("portrait,audio,output,seed\np,a,o,x\n", "seed 'x' cannot be used"),
        ("portrait,audio,output,strength\np,a,o,9\n", r"list\.csv:2: strength 9.* is out of range"),
        ("portrait,audio,output\np,a,o\np,a,o\n", "is that of line 2 too"),
        ("portrait,audio,output\np,a,o\nq,b,./p\n", r"list\.csv:3: output .*p is an input too"),
        (
            "portrait,audio,output\np,a,o\nq,b,o.MP4\n",
            r"list\.csv:3: .*o.MP4 would be a WebM .*call it o.webm",
        ),
        ("portrait,audio,output\np,a,o,7\n", "more cells"),
        ("portrait,audio,output\n", "holds no jobs"),
        ('{"portrait": 1}\n', "portrait, audio, output missing"),
        ('{"portrait": "p\\u0000", "audio": "a", "output": "o\\u0000"}\n', "portrait, output holds a NUL"),
        ("{oops\n", r"list\.csv:1: not JSON"),
    ],
)
def test_a_list_that_cannot_be_used_names_the_line(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "list.csv").write_text(text)
    with pytest.raises(SettingsError, match=message):
        read_list(tmp_path / "list.csv")


def test_a_portrait_that_is_a_link_to_itself_is_that_row_s_own_fault(tmp_path: Path) -> None:
    (tmp_path / "loop.png").symlink_to("loop.png")
    (tmp_path / "list.csv").write_text("portrait,audio,output\nloop.png,a,o\n")
    (row,) = read_list(tmp_path / "list.csv")
    assert row.portrait == tmp_path / "loop.png"


def test_a_list_that_is_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["batch", str(tmp_path / "none.csv")]) == 2
    assert "none.csv cannot be read" in capsys.readouterr().err


def test_a_list_is_worked_through_and_taken_up_again(
    fleet: TestFleet, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    voice = cut_voice(tmp_path / "voice.wav", 0.5)
    (tmp_path / "no.wav").write_bytes(b"no sound")
    rows: list[dict[str, Any]] = [
        {"portrait": str(PORTRAIT), "audio": audio, "output": f"{name}.webm", **SETTINGS, "seed": seed}
        for name, audio, seed in (("a", "voice.wav", 1), ("b", "voice.wav", 2), ("bad", "no.wav", 3))
    ]
    jobs = tmp_path / "list.jsonl"
    jobs.write_text("\n".join(map(json.dumps, rows)))
    command = ["batch", str(jobs), "--url", fleet.server.url, "--json", "--in-flight", "2"]

    def run() -> tuple[int, dict[str, dict[str, Any]]]:
        code = main(command)
        lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
        return code, {Path(line["output"]).stem: line for line in lines}

    code, first = run()
    assert code == 1
    assert {name: line["state"] for name, line in first.items()} == {"a": "done", "b": "done", "bad": "failed"}
    assert first["bad"]["error"]["error"] == "SoundError"
    assert (tmp_path / "a.webm").read_bytes() == made_here(voice, seed=1)
    assert len(fleet.client().jobs()) == 2

    # One film is gone, one line is edited, one recording is repaired, and a job that was submitted is still on its way.
    (tmp_path / "a.webm").unlink()
    (tmp_path / "no.wav").write_bytes(voice.read_bytes())
    state_path = tmp_path / "list.jsonl.state.json"
    state = json.loads(state_path.read_text())
    state[str(tmp_path / "b.webm")]["state"] = "submitted"
    state_path.write_text(json.dumps(state))
    code, second = run()
    assert code == 0
    assert {name: line["state"] for name, line in second.items()} == {"a": "done", "b": "done", "bad": "done"}
    assert second["b"]["job"] == first["b"]["job"]
    assert (tmp_path / "bad.webm").is_file()

    code, third = run()
    assert code == 0
    assert {line["state"] for line in third.values()} == {"kept"}
    command.remove("--json")
    rows[1]["seed"] = 5
    jobs.write_text("\n".join(map(json.dumps, rows)))
    assert main(command) == 0
    assert capsys.readouterr().err.strip() == "1 done, 2 kept, 0 failed"


def test_nothing_is_submitted_where_it_cannot_be_remembered(
    fleet: TestFleet, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every try submitted the first row once more. With `.state.json` the name is longer than a file's may be."""
    path = tmp_path / f"{'x' * 243}.csv"
    path.write_text(f"portrait,audio,output\n{PORTRAIT},{cut_voice(tmp_path / 'v.wav', 1)},o.webm\n")
    before = [job.id for job in fleet.client().jobs()]
    assert main(["batch", str(path), "--url", fleet.server.url]) == 2
    assert "cannot be written" in capsys.readouterr().err
    assert [job.id for job in fleet.client().jobs()] == before


def test_films_may_lie_in_a_folder(fleet: TestFleet, tmp_path: Path) -> None:
    voice = cut_voice(tmp_path / "voice.wav", 0.5)
    job = fleet.submit(voice, seed=1)
    job.wait(timeout=WAIT)
    path = fleet.folder / "films" / f"{job.id}.webm"
    assert job.result() == path.read_bytes() == made_here(voice, seed=1)
    wait_until(lambda: job.status()["bytes"] == {}, WAIT, fleet.standing)
    job.forget()
    assert not path.exists()
