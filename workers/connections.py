"""Where the fleet's Redis servers are: the one place that makes clients and Celery's settings from addresses.

TALKREEL_BROKER_URL      redis://[user[:password]@]host[:port][/db], or rediss:// for TLS
TALKREEL_ARTIFACTS_URL   the same, of the artifacts' server; the broker's where it is not given
TALKREEL_BROKER_PASSWORD, TALKREEL_ARTIFACTS_PASSWORD   instead of a password in the address
TALKREEL_REDIS_CA        PEM file of the authority that signed the servers' certificates

Addresses and passwords may be given as NAME_FILE instead: a file that holds the value (a Docker secret).
"""

from __future__ import annotations

import os
import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote, urlsplit

import redis
from redis.backoff import ExponentialBackoff, NoBackoff
from redis.retry import Retry

from pipeline.errors import SettingsError

from .errors import FleetFullError, FleetUnreachableError

DEFAULT_URL = "redis://127.0.0.1:6379/0"

# Seconds until a connection attempt or an answer (at most 4 MiB) is given up, and further attempts. A restart of
# Redis that takes longer is met by the tasks' own retries.
CONNECT_TIMEOUT = 5.0
ANSWER_TIMEOUT = 10.0
RETRIES = 3


@dataclass(frozen=True)
class RedisServer:
    """One Redis server. `ca_file`: PEM, None = the system's authorities; only of use with `tls`."""

    host: str = "127.0.0.1"
    port: int = 6379
    db: int = 0
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    tls: bool = False
    ca_file: str | None = None

    @classmethod
    def parse(cls, url: str, *, password: str | None = None, ca_file: str | None = None) -> RedisServer:
        """From an address. Raises SettingsError: not one, or the CA file is not there."""
        if not url.lower().startswith(("redis://", "rediss://")):
            raise SettingsError(_bad("it begins with neither redis:// nor rediss://"))
        try:
            parts = urlsplit(url)
            port, database = parts.port or 6379, int(parts.path.strip("/") or 0)
        except ValueError:  # which repeats what stands there: with a / in it, the end of a password
            cure = "in a password, / ? # [ ] are written %2F %3F %23 %5B %5D"
            raise SettingsError(_bad(f"its host, port or database is none ({cure})")) from None
        if not parts.hostname:
            raise SettingsError(_bad("it names no server"))
        if parts.query or parts.fragment:
            raise SettingsError(_bad("what follows its ? or # is not understood there"))
        tls = parts.scheme == "rediss"
        if tls and ca_file and not Path(ca_file).is_file():
            raise SettingsError(f"the CA file {ca_file} (TALKREEL_REDIS_CA) does not exist")
        return cls(
            host=parts.hostname,
            port=port,
            db=database,
            username=unquote(parts.username) if parts.username else None,
            password=unquote(parts.password) if parts.password else password,
            tls=tls,
            ca_file=ca_file if tls else None,
        )

    @property
    def shown(self) -> str:
        """The address as it may be seen: with the user and without the password."""
        return self._url("")

    @property
    def url(self) -> str:
        """The address with the password, for Celery and Flower. Not to be shown."""
        return self._url(f":{quote(self.password, safe='')}" if self.password else "")

    @property
    def tls_options(self) -> dict[str, Any]:
        """What redis-py, Celery (`broker_use_ssl`, `redis_backend_use_ssl`) and Flower all take for TLS."""
        if not self.tls:
            return {}
        return {"ssl_cert_reqs": ssl.CERT_REQUIRED, "ssl_check_hostname": True, "ssl_ca_certs": self.ca_file}

    def client(self, **options: Any) -> redis.Redis:
        """A client that answers in bytes. Connects at the first command; not to be shared across a fork."""
        defaults: dict[str, Any] = {
            "ssl": self.tls,
            **self.tls_options,
            "socket_connect_timeout": CONNECT_TIMEOUT,
            "socket_timeout": ANSWER_TIMEOUT,
            "socket_keepalive": True,
            "health_check_interval": 30,
            "retry": Retry(ExponentialBackoff(cap=1.0, base=0.1), RETRIES),
            "decode_responses": False,
        }
        return redis.Redis(
            host=self.host,
            port=self.port,
            db=self.db,
            username=self.username,
            password=self.password,
            **{**defaults, **options},
        )

    def check_login(self) -> None:
        """Raises FleetUnreachableError: the server is there and does not let us in, or has not that database. One that
        is not there may come later."""
        with suppress(*_PASSING_ERRORS), self.client(retry=Retry(NoBackoff(), 0)) as client:
            try:
                client.ping()
            except (*_LOGIN_ERRORS, redis.exceptions.ResponseError):
                with self.errors():
                    raise

    @contextmanager
    def errors(self) -> Iterator[None]:
        """Redis's errors inside become the fleet's, in one line."""
        try:
            yield
        except _LOGIN_ERRORS as error:
            hint = "check user and password of the address"
            raise FleetUnreachableError(f"Redis at {self.shown} refuses us: {_line(error)}; {hint}") from None
        except _PASSING_ERRORS as error:
            hint = "check TALKREEL_REDIS_CA" if "certificate" in str(error).lower() else "is it running?"
            raise FleetUnreachableError(f"Redis at {self.shown} cannot be reached: {_line(error)}; {hint}") from None
        except redis.exceptions.ResponseError as error:
            if "DB index" in str(error):
                hint = f"give a database that it has, not {self.db}"
                raise FleetUnreachableError(f"Redis at {self.shown} refuses us: {_line(error)}; {hint}") from None
            # Redis before 7 gives a script's lack of memory as an error of no class.
            if not isinstance(error, redis.exceptions.OutOfMemoryError) and "-OOM" not in str(error):
                raise
            hint = "wait for jobs to end, or raise its maxmemory"
            raise FleetFullError(f"Redis at {self.shown} is out of memory; {hint}") from None

    def _url(self, password: str) -> str:
        login = f"{quote(self.username or '', safe='')}{password}"
        host = f"[{self.host}]" if ":" in self.host else self.host
        scheme = "rediss" if self.tls else "redis"
        return f"{scheme}://{login}{'@' if login else ''}{host}:{self.port}/{self.db}"


_LOGIN_ERRORS = (
    redis.exceptions.AuthenticationError,
    redis.exceptions.AuthenticationWrongNumberOfArgsError,
    redis.exceptions.NoPermissionError,
)
_PASSING_ERRORS = (
    redis.exceptions.ConnectionError,
    redis.exceptions.TimeoutError,
    redis.exceptions.ReadOnlyError,
    redis.exceptions.MasterDownError,
    redis.exceptions.TryAgainError,
)


@dataclass(frozen=True)
class Connections:
    """The fleet's two servers; on a laptop they are one."""

    broker: RedisServer
    artifacts: RedisServer

    @classmethod
    def read(cls, url: str | None = None, environ: Mapping[str, str] = os.environ) -> Connections:
        """From the environment; `url` takes the place of TALKREEL_BROKER_URL.

        Raises SettingsError: an address is none, or a file that it names cannot be read.
        """
        ca_file = environ.get("TALKREEL_REDIS_CA") or None
        broker = RedisServer.parse(
            url or _value(environ, "TALKREEL_BROKER_URL") or DEFAULT_URL,
            password=_value(environ, "TALKREEL_BROKER_PASSWORD"),
            ca_file=ca_file,
        )
        artifacts_url = _value(environ, "TALKREEL_ARTIFACTS_URL")
        artifacts_password = _value(environ, "TALKREEL_ARTIFACTS_PASSWORD")
        if artifacts_url is not None:
            artifacts = RedisServer.parse(artifacts_url, password=artifacts_password, ca_file=ca_file)
        else:
            artifacts = replace(broker, password=artifacts_password or broker.password)
        return cls(broker, artifacts)

    def celery_settings(self) -> dict[str, Any]:
        """Broker and result backend of a Celery application, which Flower reads too."""
        settings: dict[str, Any] = {"broker_url": self.broker.url, "result_backend": self.broker.url}
        if self.broker.tls:
            settings["broker_use_ssl"] = self.broker.tls_options
            settings["redis_backend_use_ssl"] = self.broker.tls_options
        return settings


def _value(environ: Mapping[str, str], name: str) -> str | None:
    """A variable, or the content of the file that NAME_FILE names. Empty counts as not given."""
    value, path = environ.get(name) or None, environ.get(f"{name}_FILE") or None
    if value is not None and path is not None:
        raise SettingsError(f"both {name} and {name}_FILE are given; give one of them")
    if path is None:
        return value
    try:
        return Path(path).read_text(encoding="utf-8").strip() or None
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"{name}_FILE {path} cannot be read: {error}") from None


def _bad(reason: str) -> str:
    """The address itself may hold a password and is not repeated."""
    return f"the Redis address cannot be used: {reason}; give redis://user:password@host:6379/0, or rediss:// for TLS"


def _line(error: Exception) -> str:
    return " ".join(str(error).split()).rstrip(".")
