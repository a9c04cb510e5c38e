"""Redis servers and artifact stores for the fleet's tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.redis_server import Certificates, RedisServer, make_certificates


@pytest.fixture(scope="session")
def shared_redis() -> Iterator[RedisServer]:
    """One server for the whole run; `redis_server` empties it for each test."""
    with RedisServer() as server:
        yield server


@pytest.fixture
def redis_server(shared_redis: RedisServer) -> RedisServer:
    """An empty server, not to be stopped. Tests that restart or fill it start their own."""
    with shared_redis.client() as client:
        client.flushall()
    return shared_redis


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    """An authority and its server certificate."""
    return make_certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="session")
def tls_redis(certificates: Certificates) -> Iterator[RedisServer]:
    """A server for user "fleet" over TLS alone."""
    with RedisServer(users={"fleet": "p@ss/word:1"}, certificates=certificates) as server:
        yield server


@pytest.fixture(scope="session")
def other_authority(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """CA file of an authority that signed nothing here."""
    return make_certificates(tmp_path_factory.mktemp("other")).ca
