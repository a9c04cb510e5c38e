"""Runs graphs in onnxruntime-web, in headless Chromium: a page from a local server posts the outputs back."""

from __future__ import annotations

import json
import queue
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np

from tests.browser.chromium import FLAGS, find_chromium

HERE = Path(__file__).parent

WEBGPU_FLAGS = ("--enable-unsafe-webgpu", "--use-webgpu-adapter=swiftshader", "--enable-features=Vulkan")
"""A WebGPU adapter on a machine without a GPU."""

TYPES = {".mjs": "text/javascript", ".wasm": "application/wasm", ".html": "text/html"}


@dataclass(frozen=True)
class Job:
    """One graph on one provider ("wasm" or "webgpu"), run once for each set of feeds.

    `whole`: every node must run on that provider.
    """

    name: str
    model: bytes
    provider: str
    runs: Mapping[str, Mapping[str, np.ndarray]]
    whole: bool = False


@dataclass
class Found:
    """Outputs by job/run and name, flat float32; errors by job; the WebGPU adapter's vendor and architecture."""

    outputs: dict[str, dict[str, np.ndarray]] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    adapter: list[str] | None = None


def packages() -> Path:
    """The folder of onnxruntime-web's files, installed from the lock file when it is not there yet."""
    folder = HERE / "node_modules" / "onnxruntime-web" / "dist"
    if not folder.is_dir():
        npm = shutil.which("npm")
        if npm is None:
            raise FileNotFoundError("no npm on this machine; install Node.js (Debian: apt-get install npm)")
        command = [npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund"]
        subprocess.run(command, cwd=HERE, check=True, capture_output=True)
    return folder


def run_in_chromium(jobs: Sequence[Job], *, timeout: float = 1200.0) -> Found:
    """Run all jobs in one page, one after another.

    Raises:
        TimeoutError: the page did not finish; says what Chromium printed.
    """
    with (
        tempfile.TemporaryDirectory(prefix="chromium-", ignore_cleanup_errors=True) as profile,
        open(Path(profile) / "log", "w+b") as log,
    ):
        server = _Server(jobs, packages())
        threading.Thread(target=server.serve_forever, daemon=True).start()
        flags = [flag for flag in FLAGS if flag != "--disable-gpu"]
        address = f"http://127.0.0.1:{server.server_address[1]}/"
        command = [find_chromium(), *flags, *WEBGPU_FLAGS, f"--user-data-dir={profile}", address]
        process = subprocess.Popen(command, stdout=log, stderr=log)
        try:
            server.done.get(timeout=timeout)
        except queue.Empty:
            log.seek(0)
            tail = log.read().decode(errors="replace")[-2000:]
            raise TimeoutError(f"not done within {timeout:g} s; failed {server.found.failed}; {tail}") from None
        finally:
            process.terminate()
            try:
                process.wait(timeout=20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            server.shutdown()
            server.server_close()
    return server.found


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, jobs: Sequence[Job], runtime: Path) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.files: dict[str, bytes] = {"/": (HERE / "page.html").read_bytes()}
        self.runtime = runtime
        self.found = Found()
        self.done: queue.Queue[None] = queue.Queue()
        listed = []
        for job in jobs:
            self.files[f"/{job.name}.onnx"] = job.model
            runs = []
            for run, feeds in job.runs.items():
                placed = {}
                for name, array in feeds.items():
                    file = f"/{job.name}/{run}/{name}.bin"
                    self.files[file] = np.ascontiguousarray(array).tobytes()
                    placed[name] = {"file": file, "type": str(array.dtype), "shape": list(array.shape)}
                runs.append({"name": f"{job.name}/{run}", "feeds": placed})
            listed.append(
                {
                    "name": job.name,
                    "model": f"/{job.name}.onnx",
                    "provider": job.provider,
                    "whole": job.whole,
                    "runs": runs,
                }
            )
        self.files["/jobs"] = json.dumps(listed).encode()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A browser that is closed drops its connections."""


class _Handler(BaseHTTPRequestHandler):
    server: _Server

    def do_GET(self) -> None:
        body = self.server.files.get(self.path)
        if self.path.startswith("/ort/") and (self.server.runtime / Path(self.path).name).is_file():
            body = (self.server.runtime / Path(self.path).name).read_bytes()
        kind = TYPES.get(Path(self.path).suffix, "text/html" if self.path == "/" else "application/octet-stream")
        self._answer(404 if body is None else 200, body or b"", kind)

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"] or 0))
        found, (_, kind, *rest) = self.server.found, self.path.split("/")
        if kind == "output":
            found.outputs.setdefault("/".join(rest[:-1]), {})[rest[-1]] = np.frombuffer(body, np.float32)
        elif kind == "failed":
            found.failed[rest[0]] = body.decode(errors="replace")
        elif kind == "adapter":
            found.adapter = json.loads(body)
        self._answer(204, b"", "text/plain")
        if kind == "done":
            self.server.done.put(None)

    def _answer(self, status: int, body: bytes, kind: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Quiet."""
