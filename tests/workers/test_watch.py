"""`talkreel watch` on a terminal: the bars that a user of `talkreel render` knows."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.workers.fleet import ROOT, WAIT, TestFleet, cut_voice, running_fleet, wait_until
from workers.commands import watch

CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class Terminal:
    """A command with a terminal for its standard error, 100 columns wide, and what it has shown there."""

    def __init__(self, *command: str) -> None:
        self._end, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 100, 0, 0))
        variables = {**os.environ, "TERM": "xterm", "COLUMNS": "100"}
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=theirs, env=variables, cwd=ROOT)
        os.close(theirs)
        self._raw = b""
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        try:
            while data := os.read(self._end, 65536):
                self._raw += data
        except OSError:  # how Linux ends a terminal that nobody has open any more
            pass

    @property
    def text(self) -> str:
        """All that was shown, without colours and movements."""
        return CONTROL.sub("", self._raw.decode(errors="replace"))

    def shows(self, stage: str, count: str) -> bool:
        """Whether a bar of this stage had this count."""
        return re.search(rf"{stage} +\S+ +{re.escape(count)} ", self.text) is not None

    def wait_shows(self, stage: str, count: str) -> None:
        wait_until(lambda: self.shows(stage, count), WAIT, lambda: f"{stage} {count} is not shown:\n{self.text}")

    def finish(self) -> tuple[int, str]:
        """Its exit code and standard output."""
        out, _ = self.process.communicate(timeout=WAIT)
        self._reader.join()
        os.close(self._end)
        return self.process.returncode, out.decode()


class SilentJob:
    """A job whose server does not answer."""

    id = "silent"

    def __init__(self) -> None:
        self.asked, self.answered = threading.Event(), threading.Event()

    def status(self) -> dict[str, Any]:
        self.asked.set()
        self.answered.wait(20)
        return {"stalled": []}

    def wait(self, on_event: object) -> dict[str, Any]:
        assert self.asked.wait(WAIT)
        raise KeyboardInterrupt


def test_who_goes_waits_for_no_silent_server(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C took 37 s."""
    monkeypatch.setattr(watch, "LOOK", 0.01)
    job, looks = SilentJob(), set(threading.enumerate())
    with pytest.raises(KeyboardInterrupt):
        watch.follow(job, quiet=True)  # type: ignore[arg-type]
    (look,) = set(threading.enumerate()) - looks
    assert look.is_alive()
    job.answered.set()
    look.join(WAIT)


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestFleet]:
    with running_fleet(tmp_path_factory.mktemp("fleet"), "one", odd=True) as made:
        yield made


@pytest.mark.parametrize("command", ["watch", "submit"])
def test_a_job_is_followed_stage_by_stage(command: str, fleet: TestFleet, tmp_path: Path) -> None:
    """It shows real counts while the frames are made, and every stage full at the end."""
    fleet.empty()
    voice = cut_voice(tmp_path / "voice.wav", 1)
    fleet.hold("mid-render:0")
    if command == "watch":
        job = fleet.submit(voice).id
        words, last = ["watch", job], f"{job} is done, 1.00 s of film"
    else:
        last = str(tmp_path / "film.webm")
        portrait = str(ROOT / "samples" / "portrait.png")
        words = ["submit", portrait, str(voice), "--wait", "-o", last]
        words += ["--preset", "preview", "--frame", "crop", "--fps", "5"]
    terminal = Terminal(sys.executable, "-m", "pipeline", *words, "--url", fleet.server.url)
    for stage in ("sound", "portrait", "motion", "appearance"):
        terminal.wait_shows(stage, "1/1")
    terminal.wait_shows("frames", "1/5")
    assert not terminal.shows("film", "1/1")
    fleet.let_go("mid-render:0")
    code, out = terminal.finish()
    assert code == 0, terminal.text
    assert out.strip() == last
    for stage, count in (("frames", "5/5"), ("film", "1/1")):
        assert terminal.shows(stage, count), terminal.text
