"""Addresses, and real servers that ask for TLS, a user and a password."""

from __future__ import annotations

import ssl
from dataclasses import replace
from pathlib import Path

import pytest
from celery import Celery

from pipeline.errors import SettingsError
from tests.redis_server import RedisServer, make_certificates
from workers.connections import Connections
from workers.connections import RedisServer as Address
from workers.errors import FleetUnreachableError

PASSWORD = "p@ss/word:1%é"


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("redis://localhost", Address("localhost")),
        ("redis://cache:6380/2", Address("cache", 6380, 2)),
        ("redis://:secret@cache", Address("cache", password="secret")),
        ("redis://fleet@cache", Address("cache", username="fleet")),
        ("rediss://fleet:p%40ss%2Fword%3A1%25%C3%A9@cache/1", Address("cache", 6379, 1, "fleet", PASSWORD, tls=True)),
        ("redis://[::1]:7000/0", Address("::1", 7000)),
    ],
)
def test_an_address_is_read_and_written(url: str, address: Address) -> None:
    assert Address.parse(url) == address
    assert Address.parse(address.url) == address


@pytest.mark.parametrize(
    "url",
    [
        "",
        "localhost:6379",
        "http://:secret@cache",
        "redis://",
        "redis://:secret@cache:port",
        "redis://:secret@cache/one",
        "redis://:is/secret@cache",
        "redis://:hidden@cache/0#secret",
        "redis://:secret@cache/0?ssl_cert_reqs=none",
        "redis://:secret@cache:99999",
    ],
)
def test_what_is_no_address_is_refused_without_its_password(url: str) -> None:
    with pytest.raises(SettingsError, match="the Redis address cannot be used") as caught:
        Address.parse(url)
    assert "secret" not in str(caught.value)


def test_a_password_is_never_shown() -> None:
    address = Address.parse("rediss://fleet:secret@cache/1")
    assert address.shown == "rediss://fleet@cache:6379/1"
    assert "secret" not in repr(address)
    assert "secret" not in repr(Connections(address, address))


def test_defaults_are_one_server_on_this_machine() -> None:
    assert Connections.read(environ={}) == Connections(Address("127.0.0.1"), Address("127.0.0.1"))


def test_artifacts_lie_at_the_brokers_server_unless_said() -> None:
    one = Connections.read(environ={"TALKREEL_BROKER_URL": "redis://broker", "TALKREEL_BROKER_PASSWORD": "secret"})
    assert one.artifacts == one.broker == Address("broker", password="secret")
    two = Connections.read(
        environ={"TALKREEL_BROKER_URL": "redis://broker", "TALKREEL_ARTIFACTS_URL": "redis://store/3"}
    )
    assert two == Connections(Address("broker"), Address("store", db=3))


def test_a_given_address_takes_the_environments_place() -> None:
    connections = Connections.read("redis://mine", {"TALKREEL_BROKER_URL": "redis://broker"})
    assert connections.broker == Address("mine")


def test_secrets_from_files(tmp_path: Path) -> None:
    (tmp_path / "url").write_text("redis://fleet@broker\n")
    (tmp_path / "password").write_text(PASSWORD + "\n", encoding="utf-8")
    environ = {
        "TALKREEL_BROKER_URL_FILE": str(tmp_path / "url"),
        "TALKREEL_BROKER_PASSWORD_FILE": str(tmp_path / "password"),
        "TALKREEL_ARTIFACTS_URL": "redis://store",
        "TALKREEL_ARTIFACTS_PASSWORD_FILE": str(tmp_path / "password"),
    }
    assert Connections.read(environ=environ) == Connections(
        Address("broker", username="fleet", password=PASSWORD), Address("store", password=PASSWORD)
    )


def test_settings_that_cannot_be_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="both TALKREEL_BROKER_PASSWORD and TALKREEL_BROKER_PASSWORD_FILE"):
        Connections.read(environ={"TALKREEL_BROKER_PASSWORD": "a", "TALKREEL_BROKER_PASSWORD_FILE": "b"})
    with pytest.raises(SettingsError, match=r"TALKREEL_BROKER_URL_FILE .*nowhere cannot be read"):
        Connections.read(environ={"TALKREEL_BROKER_URL_FILE": str(tmp_path / "nowhere")})
    with pytest.raises(SettingsError, match=r"CA file .*nowhere.*does not exist"):
        Connections.read("rediss://cache", {"TALKREEL_REDIS_CA": str(tmp_path / "nowhere")})


def test_plain_celery_settings_have_no_tls() -> None:
    connections = Connections.read("redis://fleet:secret@cache", {})
    assert connections.celery_settings() == {
        "broker_url": "redis://fleet:secret@cache:6379/0",
        "result_backend": "redis://fleet:secret@cache:6379/0",
    }


# Real servers


def test_a_client_over_tls_with_user_and_password(tls_redis: RedisServer) -> None:
    environ = {"TALKREEL_BROKER_URL": tls_redis.url, "TALKREEL_REDIS_CA": str(tls_redis.address.ca_file)}
    connections = Connections.read(environ=environ)
    with connections.artifacts.client() as client:
        client.set("key", b"\xff", px=10_000)
        assert client.get("key") == b"\xff"
        assert client.acl_whoami() == "fleet"


# Celery 5.7 calls what redis-py 8 calls deprecated.
@pytest.mark.filterwarnings("ignore:Call to deprecated setex")
def test_celery_over_tls_with_user_and_password(tls_redis: RedisServer) -> None:
    """Broker and result backend both; Flower reads the same settings."""
    settings = Connections(tls_redis.address, tls_redis.address).celery_settings()
    assert settings["broker_use_ssl"]["ssl_cert_reqs"] == ssl.CERT_REQUIRED
    app = Celery("test")
    app.conf.update(settings, result_expires=60)
    with app.connection_for_write() as connection:
        connection.ensure_connection(max_retries=1, timeout=5)
        queue = connection.SimpleQueue("tls")
        queue.put({"job": "j1"})
        message = queue.get(timeout=5)
        assert message.payload == {"job": "j1"}
        message.ack()
        queue.close()
    app.backend.store_result("task", {"frames": 3}, "SUCCESS")
    assert app.AsyncResult("task").get(timeout=5) == {"frames": 3}
    app.AsyncResult("task").forget()
    app.close()


def refusal(address: Address) -> str:
    """The one line with which a server cannot be used."""
    with (
        pytest.raises(FleetUnreachableError) as caught,
        address.errors(),
        address.client(retry=None, socket_timeout=2) as client,
    ):
        client.ping()
    assert "\n" not in str(caught.value)
    assert f"127.0.0.1:{address.port}" in str(caught.value)
    return str(caught.value)


def test_a_wrong_password_or_user(tls_redis: RedisServer) -> None:
    for change in ({"password": "wrong-one"}, {"username": "nobody"}, {"password": None, "username": None}):
        text = refusal(replace(tls_redis.address, **change))
        assert "refuses us" in text
        assert "wrong-one" not in text
        with pytest.raises(FleetUnreachableError) as caught:
            replace(tls_redis.address, **change).check_login()
        assert str(caught.value) == text
    tls_redis.address.check_login()


def test_a_wrong_authority(tls_redis: RedisServer, other_authority: Path) -> None:
    text = refusal(replace(tls_redis.address, ca_file=str(other_authority)))
    assert "certificate" in text
    assert "TALKREEL_REDIS_CA" in text
    assert "certificate" in refusal(replace(tls_redis.address, ca_file=None))


def test_a_ca_file_that_is_none(tls_redis: RedisServer, tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("not a certificate")
    assert "cannot be reached" in refusal(replace(tls_redis.address, ca_file=str(tmp_path / "ca.pem")))


def test_a_certificate_for_another_host(tmp_path: Path) -> None:
    with RedisServer(certificates=make_certificates(tmp_path, names="DNS:elsewhere")) as server:
        assert "certificate" in refusal(server.address)


def test_tls_where_the_server_has_none_and_the_other_way(redis_server: RedisServer, tls_redis: RedisServer) -> None:
    ca_file = tls_redis.address.ca_file
    assert "cannot be reached" in refusal(replace(redis_server.address, tls=True, ca_file=ca_file))
    assert "cannot be reached" in refusal(replace(tls_redis.address, tls=False, ca_file=None))


def test_a_database_that_the_server_has_not(redis_server: RedisServer) -> None:
    nowhere = replace(redis_server.address, db=99)
    text = "refuses us: DB index is out of range; give a database that it has, not 99"
    assert text in refusal(nowhere)
    with pytest.raises(FleetUnreachableError, match=text):
        nowhere.check_login()


def test_nobody_there() -> None:
    with RedisServer() as server:
        address = server.address
    assert "is it running?" in refusal(address)
    address.check_login()  # it may come later
