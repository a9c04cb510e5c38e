"""Plays a film in headless Chromium: a page from a local server, whose script posts what it saw. Looks at pages."""

from __future__ import annotations

import json
import queue
import re
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")

PAGE = Path(__file__).with_name("page.html")

FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--no-proxy-server",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--autoplay-policy=no-user-gesture-required",
    "--mute-audio",
)


@dataclass(frozen=True)
class Playback:
    """What the page saw. Times in seconds; `seek_colour`: R, G, B shown at the picture's centre after seeking.

    `error` is None when the film loaded, seeked to the middle and played to `ended`; `ranges`: how many
    requests asked for a part of the file.
    """

    error: str | None
    events: tuple[str, ...]
    ranges: int
    width: int = 0
    height: int = 0
    duration: float = 0.0
    seek_time: float = 0.0
    seek_colour: tuple[int, ...] = ()
    end_time: float = 0.0
    frames: int = 0
    audio_bytes: int = 0


def find_chromium() -> str:
    """The browser's path. Raises FileNotFoundError: a missing browser is a failure, not a skip."""
    for name in NAMES:
        path = shutil.which(name)
        if path is not None:
            return path
    raise FileNotFoundError("no Chromium on this machine; install it (Debian: apt-get install chromium)")


def play_in_chromium(film: Path, *, timeout: float = 120.0) -> Playback:
    """Loads the film, seeks to its middle, plays it whole. `timeout`: seconds for all of it."""
    browser = find_chromium()
    with (
        tempfile.TemporaryDirectory(prefix="chromium-", ignore_cleanup_errors=True) as profile,
        _served(film) as (address, server),
        open(Path(profile) / "log", "w+b") as log,
    ):
        process = subprocess.Popen([browser, *FLAGS, f"--user-data-dir={profile}", address], stdout=log, stderr=log)
        try:
            report = server.reports.get(timeout=timeout)
        except queue.Empty:
            log.seek(0)
            tail = log.read().decode(errors="replace")[-2000:]
            raise TimeoutError(f"{film} was not played within {timeout:g} s; Chromium said: {tail}") from None
        finally:
            process.terminate()
            try:
                process.wait(timeout=20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
    report["events"] = tuple(report["events"])
    report["seek_colour"] = tuple(report.get("seek_colour", ()))
    return Playback(**{"error": None, **report, "ranges": server.ranges})


def see_in_chromium(address: str, text: str, picture: Path, *, timeout: float = 60.0) -> str:
    """Opens a page until it holds this text; the page's elements as its scripts left them, and a PNG of it.

    Raises TimeoutError: it does not within `timeout` seconds; says what it holds.
    """
    shown = (f"--screenshot={picture}", "--window-size=1400,900", "--hide-scrollbars", "--virtual-time-budget=5000")
    end = time.monotonic() + timeout
    while True:
        with tempfile.TemporaryDirectory(prefix="chromium-", ignore_cleanup_errors=True) as profile:
            command = [find_chromium(), *FLAGS, f"--user-data-dir={profile}", *shown, "--dump-dom", address]
            page = subprocess.run(command, capture_output=True, timeout=timeout).stdout.decode(errors="replace")
        if text in page:
            return page
        if time.monotonic() > end:
            raise TimeoutError(f"the page does not hold {text!r} within {timeout:g} s, but: {page[:3000]}")


class _Server(ThreadingHTTPServer):
    """Serves the page and the film, and keeps what the page posts."""

    daemon_threads = True

    def __init__(self, film: Path) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.film = film.read_bytes()
        self.reports: queue.Queue[dict[str, Any]] = queue.Queue()
        self.ranges = 0

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A browser drops requests when it seeks; that is no error of the film."""


class _Handler(BaseHTTPRequestHandler):
    server: _Server

    def do_GET(self) -> None:
        if self.path == "/":
            self._answer(200, PAGE.read_bytes(), "text/html")
        elif self.path == "/film.webm":
            self._film()
        else:
            self._answer(404, b"", "text/plain")

    def do_POST(self) -> None:
        report = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self._answer(204, b"", "text/plain")
        self.server.reports.put(report)

    def _film(self) -> None:
        film = self.server.film
        asked = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        if asked is None:
            self._answer(200, film, "video/webm")
            return
        self.server.ranges += 1
        first, last = int(asked[1]), min(int(asked[2] or len(film)), len(film) - 1)
        part = film[first : last + 1]
        self._answer(206, part, "video/webm", {"Content-Range": f"bytes {first}-{last}/{len(film)}"})

    def _answer(self, status: int, body: bytes, kind: str, more: dict[str, str] | None = None) -> None:
        self.send_response(status)
        headers = {"Content-Type": kind, "Content-Length": str(len(body)), "Accept-Ranges": "bytes"}
        for name, value in {**headers, **(more or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Quiet."""


@contextmanager
def _served(film: Path) -> Iterator[tuple[str, _Server]]:
    with _Server(film) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}/", server
        finally:
            server.shutdown()
            thread.join()
