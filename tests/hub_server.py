"""A real HTTP server that speaks the hub's addresses: `/<owner>/<repository>/resolve/<revision>/<path>`.

What is larger than `redirect_above` is answered as the hub does, by a redirect to another host (a second server, at
another port and under another name) whose address is signed. Ranges, HEAD, keep-alive; faults by path; every request
is remembered. It is a forward proxy, too: `GET http://any.host/…` is answered as if it were that host.
"""

from __future__ import annotations

import hashlib
import threading
from collections import Counter, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from urllib.parse import unquote, urlsplit

BLOCK = 1 << 14


@dataclass(frozen=True)
class Fault:
    """What is wrong with one answer. `status` with `headers` instead of the file; `cut`: the connection ends after
    so many bytes of the body; `no_ranges`: the whole file whatever was asked for; `extra`: bytes after the end."""

    status: int | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    cut: int | None = None
    no_ranges: bool = False
    extra: bytes = b""


@dataclass
class Request:
    """One request as it came; `headers` with small names. `sent`: bytes of the body that went out; `proxied`: it came
    as to a proxy."""

    method: str
    path: str
    headers: Mapping[str, str]
    cdn: bool
    proxied: bool
    start: int = 0
    sent: int = 0


class HubServer:
    """Use as a context manager; `url` goes into HF_ENDPOINT.

    `pause`: seconds before each block of 16 KiB, so that a pull takes a while. `on_sent`: called after every block,
    one at a time, with all bytes of bodies sent so far. `most_at_once`: bodies that were under way together.
    """

    def __init__(self, redirect_above: int = 1000) -> None:
        self.redirect_above = redirect_above
        self.requests: list[Request] = []
        self.faults: dict[str, deque[Fault]] = {}
        self.always: dict[str, Fault] = {}
        self.pause = 0.0
        self.refuse_head = False
        self.most_at_once = 0
        self._at_once = 0
        self.on_sent: Callable[[int], None] | None = None
        self._files: dict[str, bytes | Path] = {}
        self._lock = threading.Lock()
        self._servers: list[ThreadingHTTPServer] = []
        self._closing = threading.Event()
        self.url = self._start(cdn=False, host="127.0.0.1")
        self.cdn_url = self._start(cdn=True, host="localhost")

    def add(self, repository: str, revision: str, path: str, data: bytes | Path) -> None:
        """A file of a repository; one on the disk is read as it is sent."""
        self._files[f"/{repository}/resolve/{revision}/{path}"] = data

    def add_parts(self, repository: str, revision: str, path: str, data: bytes, endings: list[str]) -> None:
        """A file in pieces `<path>.part-<ending>`, all but the last of one size."""
        size = -(-len(data) // len(endings))
        for number, ending in enumerate(endings):
            self.add(repository, revision, f"{path}.part-{ending}", data[number * size : (number + 1) * size])

    def add_at(self, address: str, data: bytes | Path) -> None:
        """A file at any path, beginning with `/`."""
        self._files[address] = data

    def file(self, path_end: str) -> bytes:
        """The content of the one file whose path ends so."""
        data = self._files[self._address(path_end)]
        return data if isinstance(data, bytes) else data.read_bytes()

    def change(self, path_end: str, change: Callable[[bytes], bytes]) -> None:
        """Another content."""
        self._files[self._address(path_end)] = change(self.file(path_end))

    def fail(self, path_end: str, *faults: Fault, always: bool = False) -> None:
        """The next GETs of the file whose path ends so get these faults, or all of them the one."""
        if always:
            (self.always[self._address(path_end)],) = faults
        else:
            self.faults.setdefault(self._address(path_end), deque()).extend(faults)

    def sent(self) -> int:
        """Bytes of all bodies."""
        return sum(request.sent for request in self.requests)

    def sent_by_path(self) -> Counter[str]:
        counts: Counter[str] = Counter()
        for request in self.requests:
            if request.sent:
                counts[request.path] += request.sent
        return counts

    def close(self) -> None:
        self._closing.set()
        for server in self._servers:
            server.shutdown()
            server.server_close()

    def __enter__(self) -> HubServer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _address(self, path_end: str) -> str:
        (found,) = (path for path in self._files if path.endswith(path_end))
        return found

    def _start(self, *, cdn: bool, host: str) -> str:
        hub = self

        class Handler(_Handler):
            server_hub, is_cdn = hub, cdn

        server = _Server(("127.0.0.1", 0), Handler)
        server.daemon_threads = True
        self._servers.append(server)
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        return f"http://{host}:{server.server_address[1]}"


class _Server(ThreadingHTTPServer):
    def handle_error(self, request: object, client_address: object) -> None:
        """A client that was killed leaves no trace in the tests' output."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_hub: HubServer
    is_cdn: bool

    def do_GET(self) -> None:
        self._answer(body=True)

    def do_HEAD(self) -> None:
        self._answer(body=False)

    def log_message(self, format: str, *args: object) -> None:
        pass

    def _answer(self, *, body: bool) -> None:
        hub, asked = self.server_hub, urlsplit(self.path)
        path = unquote(asked.path)
        signed = path.startswith("/signed/") and self.is_cdn
        path = path.removeprefix("/signed") if signed else path
        headers = {name.lower(): value for name, value in self.headers.items()}
        request = Request(self.command, path, headers, self.is_cdn, bool(asked.netloc))
        with hub._lock:
            hub.requests.append(request)
            waiting = hub.faults.get(path)
            last = self.is_cdn or self._size(path) <= hub.redirect_above
            fault = hub.always.get(path, Fault())
            if body and last and waiting:
                fault = waiting.popleft()
        if path not in hub._files or (self.is_cdn and not (signed and asked.query.startswith("signature="))):
            self._status(404)
        elif not last:
            signature = hashlib.sha256(path.encode()).hexdigest()
            self.send_response(302)
            self.send_header("Location", f"{hub.cdn_url}/signed{asked.path}?signature={signature}")
            self.send_header("X-Linked-Size", str(self._size(path)))
            self.send_header("Content-Length", "0")
            self.end_headers()
        elif fault.status is not None and body:
            self._status(fault.status, fault.headers)
        elif not body and (self.is_cdn or hub.refuse_head):
            self._status(403)  # the address is signed for GET
        else:
            self._send(request, path, fault, body=body)

    def _size(self, path: str) -> int:
        data = self.server_hub._files.get(path, b"")
        return len(data) if isinstance(data, bytes) else data.stat().st_size

    def _status(self, status: int, headers: Mapping[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def _send(self, request: Request, path: str, fault: Fault, *, body: bool) -> None:
        size = self._size(path)
        start, stop = 0, size
        asked = self.headers.get("Range")
        if asked and not fault.no_ranges:
            first, _, last = asked.removeprefix("bytes=").partition("-")
            start, stop = int(first), min(int(last) + 1, size) if last else size
            if start >= size:
                self._status(416, {"Content-Range": f"bytes */{size}"})
                return
            self.send_response(206)
            self.send_header("Content-Range", f"bytes {start}-{stop - 1}/{size}")
        else:
            self.send_response(200)
        request.start = start
        if fault.extra:  # no length, so that nobody can tell beforehand
            self.send_header("Connection", "close")
            self.close_connection = True
        else:
            self.send_header("Content-Length", str(stop - start))
        self.end_headers()
        if body:
            self._count(1)
            try:
                self._body(request, path, fault, start, stop)
            except OSError:  # the other side is gone, killed perhaps
                self.close_connection = True
            finally:
                self._count(-1)

    def _count(self, change: int) -> None:
        hub = self.server_hub
        with hub._lock:
            hub._at_once += change
            hub.most_at_once = max(hub.most_at_once, hub._at_once)

    def _body(self, request: Request, path: str, fault: Fault, start: int, stop: int) -> None:
        hub, data = self.server_hub, self.server_hub._files[path]
        end = stop if fault.cut is None else min(stop, start + fault.cut)
        while start < end:
            if hub.pause and hub._closing.wait(hub.pause):
                return
            count = min(BLOCK, end - start)
            if isinstance(data, bytes):
                block = data[start : start + count]
            else:
                with data.open("rb") as file:
                    file.seek(start)
                    block = file.read(count)
            self.wfile.write(block)
            start += count
            with hub._lock:
                request.sent += count
                if hub.on_sent is not None:
                    hub.on_sent(hub.sent())
        self.wfile.write(fault.extra)
        if fault.cut is not None:
            self.close_connection = True
