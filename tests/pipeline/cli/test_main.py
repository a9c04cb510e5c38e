"""The command line as a user has it: a process, its output, its exit code."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import time
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from pipeline.cli.command import GROUP, find_commands
from pipeline.cli.main import main
from pipeline.cli.render import RenderCommand
from pipeline.errors import RuntimeMissingError
from pipeline.whole_file import write_whole
from tests.small_disk import small_disk
from tests.workers.fleet import cut_voice

SAMPLES = Path(__file__).parents[3] / "samples"
PORTRAIT, VOICE = SAMPLES / "portrait.png", SAMPLES / "voice.wav"
FAST = ("--preset", "preview", "--frame", "crop")


def talkreel(*arguments: str | Path, module: bool = True) -> subprocess.CompletedProcess[str]:
    start = [sys.executable, "-m", "pipeline"] if module else [str(Path(sys.executable).with_name("talkreel"))]
    return subprocess.run([*start, *map(str, arguments)], capture_output=True, text=True, timeout=300, check=False)


def test_render_makes_film_and_report(tmp_path: Path) -> None:
    film, report, voice = tmp_path / "film.webm", tmp_path / "report.json", cut_voice(tmp_path / "voice.wav", 2.6)
    done = talkreel("render", PORTRAIT, voice, "-o", film, *FAST, "--fps", "5", "--report", report, module=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
    assert f"{film}: 256x256" in done.stderr
    data = json.loads(report.read_text())
    assert data["frames"]["total"] == 13
    assert data["film"]["picture_duration"] == pytest.approx(2.6)
    assert film.stat().st_size > 10000


def test_quiet_says_nothing(tmp_path: Path) -> None:
    voice = cut_voice(tmp_path / "voice.wav", 1)
    done = talkreel("render", PORTRAIT, voice, "-o", tmp_path / "film.webm", *FAST, "--fps", "2", "--quiet")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("--strength", "3"), "strength 3.0 is out of range"),
        (("--fps", "0"), "fps 0 is out of range"),
        (("--fps", "x"), "fps"),
        (("--background", "nocolour"), "background 'nocolour' is not a colour"),
        (("--preset", "huge"), "choose one of: preview, quality"),
        (("--pack", "nothing"), "no pack 'nothing'"),
        (("--face", "7"), "--face N"),
        (("--threads", "0"), "threads 0 is out of range"),
        (("--max-side", "10"), "max_side 10 is out of range"),
        (("--seed", "-1"), "seed -1 is out of range"),
    ],
)
def test_bad_settings_are_one_line_and_exit_2(
    arguments: tuple[str, ...], text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["render", str(PORTRAIT), str(VOICE), "-o", str(tmp_path / "film.webm"), *arguments]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert text in said.err
    assert len(said.err.strip().splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("portrait", "audio", "text"),
    [("missing.png", VOICE, "missing.png"), (PORTRAIT, "missing.wav", "missing.wav"), (VOICE, VOICE, "voice.wav")],
)
def test_bad_input_is_one_line_and_exit_2(portrait: str | Path, audio: str | Path, text: str, tmp_path: Path) -> None:
    done = talkreel("render", portrait, audio, "-o", tmp_path / "film.webm", *FAST)
    assert done.returncode == 2
    assert text in done.stderr
    assert "Traceback" not in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("arguments", [(), ("render",), ("nonsense",), ("render", "a", "b")])
def test_bad_usage_is_exit_2(arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main(list(arguments))
    assert left.value.code == 2
    assert "usage:" in capsys.readouterr().err


@pytest.mark.parametrize("report", ["missing/report.json", "film.webm", "voice.wav", "."])
def test_a_report_without_a_place_is_told_before_any_work(
    report: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    voice = tmp_path / "voice.wav"
    voice.write_bytes(VOICE.read_bytes())
    words = ["render", PORTRAIT, voice, "-o", tmp_path / "film.webm", *FAST, "--report", tmp_path / report]
    assert main([str(word) for word in words]) == 2
    said = capsys.readouterr().err
    assert str(tmp_path) in said
    assert len(said.strip().splitlines()) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["voice.wav"]
    assert voice.read_bytes() == VOICE.read_bytes()


@pytest.mark.parametrize("gone", [False, True], ids=["full disk", "no folder"])
def test_a_report_that_cannot_be_written_after_the_film(
    gone: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One line; the film stays, and nothing of the report."""
    film, reports = tmp_path / "film.webm", tmp_path / "reports"
    reports.mkdir()

    def write(path: Path, data: bytes) -> None:
        if gone:
            reports.rmdir()
            reports.write_text("a file by now")
        with small_disk(100):
            write_whole(path, data)

    monkeypatch.setattr("pipeline.cli.render.write_whole", write)
    voice = cut_voice(tmp_path / "voice.wav", 0.5)
    words = ["render", PORTRAIT, voice, "-o", film, *FAST, "--fps", "2", "--report", reports / "report.json"]
    assert main([str(word) for word in words]) == 2
    last = capsys.readouterr().err.splitlines()[-1]
    reason = os.strerror(errno.ENOTDIR if gone else errno.EFBIG)
    assert last.startswith(f"talkreel: {film} is made, but not its report: {reports}/report.json cannot be written: ")
    assert reason in last
    assert film.stat().st_size > 1000
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["film.webm", "reports", "voice.wav"]


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interruption_leaves_no_file(
    number: int, code: int, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    film, voice = tmp_path / "film.webm", cut_voice(tmp_path_factory.mktemp("voice") / "voice.wav", 3.9)
    command = [sys.executable, "-m", "pipeline", "render", PORTRAIT, voice, "-o", film, "--fps", "60", "--quiet"]
    process = subprocess.Popen(list(map(str, command)), stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 60
    while not list(tmp_path.iterdir()) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert [path.suffix for path in tmp_path.iterdir()] == [".part"]
    process.send_signal(number)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == code
    assert errors.strip() == "talkreel: interrupted"
    assert list(tmp_path.iterdir()) == []


def test_an_interruption_that_other_code_took_for_an_import_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(self: RenderCommand, args: object) -> int:
        try:
            signal.raise_signal(signal.SIGINT)
        except KeyboardInterrupt:  # as extension modules do while they are imported
            raise RuntimeMissingError("onnxruntime is not installed") from None
        return 0

    monkeypatch.setattr(RenderCommand, "run", interrupted)
    assert main(["render", "a", "b", "-o", "c"]) == 130
    assert capsys.readouterr().err == "talkreel: interrupted\n"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize(
    "module",
    ["argparse", "pipeline.report", "numpy", "numpy.linalg", "pipeline.cli.command", "pipeline.cli.doctor", "av"],
)
def test_an_interruption_while_modules_import_is_one_line(module: str, number: int) -> None:
    code = (
        "import runpy, signal, sys\n"
        "class Interrupting:\n"
        "    def find_spec(self, name, *more):\n"
        f"        if name == {module!r}:\n"
        "            sys.meta_path.remove(self)\n"
        f"            signal.raise_signal({int(number)})\n"
        "sys.meta_path.insert(0, Interrupting())\n"
        "sys.argv[1:] = ['doctor']\n"
        "runpy.run_module('pipeline', run_name='__main__', alter_sys=True)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (128 + number, "", "talkreel: interrupted\n")


def test_a_command_that_does_not_load_leaves_the_others(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = EntryPoint("broken", "no_such_package:Command", GROUP)
    monkeypatch.setattr("pipeline.cli.command.entry_points", lambda group: [broken])
    with pytest.raises(SystemExit) as left:
        main(["--help"])
    assert left.value.code == 0
    shown = capsys.readouterr().out
    assert "render" in shown
    assert "broken" not in shown
    assert main(["broken", "--option"]) == 1
    assert "no_such_package" in capsys.readouterr().err


def test_without_an_installation_the_librarys_commands_are_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipeline.cli.command.entry_points", lambda group: [])
    assert list(find_commands()) == ["doctor", "graph", "pack", "render"]


def test_doctor_finds_nothing_missing_here() -> None:
    done = talkreel("doctor")
    assert done.returncode == 0, done.stdout
    for text in (
        "cpu usable",
        "onnxruntime 1.",
        "libvpx-vp9 yes",
        "libopus yes",
        "embedded",
        "hashes good",
        "threads",
        "GiB",
    ):
        assert text in done.stdout
    data = json.loads(talkreel("doctor", "--json").stdout)
    assert data["problems"] == []
    assert data["threads"] == len(os.sched_getaffinity(0))


def test_doctor_names_what_is_missing() -> None:
    code = (
        "import sys; sys.modules['onnxruntime'] = None\nfrom pipeline.cli.main import main; sys.exit(main(['doctor']))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "talkreel[cpu]" in done.stdout


def test_version_and_help_list_the_commands() -> None:
    assert talkreel("--version").stdout.startswith("talkreel ")
    shown = talkreel("--help").stdout
    assert "render" in shown
    assert "doctor" in shown


def test_only_the_command_that_is_asked_for_is_loaded() -> None:
    code = (
        "import sys; from pipeline.cli.main import main\n"
        "try: main(['render', '--help'])\n"
        "except SystemExit: pass\n"
        "print(sorted(name for name in sys.modules if name.startswith(('workers', 'celery'))), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.strip() == "[]"
    assert "PORTRAIT" in done.stdout
