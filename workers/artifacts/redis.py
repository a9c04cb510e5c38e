"""Artifacts in Redis, shared by a fleet.

Values above `CHUNK_BYTES` go in chunks, the manifest last, so a reader sees all of a value or nothing.
Layout and scripts: scripts.py. Works under `noeviction` and under any eviction policy: a lost part is a
missing artifact.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import redis

from ..connections import RedisServer
from ..errors import ArtifactMissingError, ArtifactsTooLargeError, FleetUnreachableError, JobReleasedError
from . import scripts
from .store import (
    JOB_LIMIT,
    RELEASED_FOR,
    ArtifactStore,
    Claim,
    Data,
    checked_job,
    checked_key,
    kind_of,
    milliseconds,
)

CHUNK_BYTES = 4 << 20
"""Larger values would keep the server busy with one client for too long."""

# Seconds that chunks live without a manifest: what a writer that died leaves behind.
UPLOAD_LIFETIME = 300.0

# Chunks may vanish between upload and manifest, where another writer of the same value was refused.
UPLOADS = 3


@dataclass(frozen=True)
class _Header:
    digest: str
    size: int
    chunks: int

    @classmethod
    def of(cls, data: memoryview) -> _Header:
        chunks = -(-len(data) // CHUNK_BYTES) if len(data) > CHUNK_BYTES else 0
        return cls(_digest(data), len(data), chunks)

    @classmethod
    def read(cls, text: bytes) -> _Header:
        return cls(text[:32].decode(), int(text[32:48]), int(text[48:56]))

    def write(self) -> bytes:
        return f"{self.digest}{self.size:016d}{self.chunks:08d}".encode()


class RedisStore(ArtifactStore):
    """See `ArtifactStore`. `namespace` begins every key's name."""

    def __init__(self, server: RedisServer, job_limit: int = JOB_LIMIT, namespace: str = "talkreel") -> None:
        super().__init__(job_limit)
        self.server = server
        self.namespace = namespace
        self._client: redis.Redis | None = None
        self._process = 0

    @property
    def client(self) -> redis.Redis:
        """This process's client: a fork must not use its parent's sockets."""
        if self._client is None or self._process != os.getpid():
            self._client, self._process = self.server.client(), os.getpid()
        return self._client

    def put(self, key: str, data: Data, *, job: str, lifetime: float) -> None:
        view = memoryview(data).cast("B")
        header = _Header.of(view)
        binding = (checked_job(job), checked_key(key), milliseconds(lifetime), self.job_limit)
        if not header.chunks:
            self._answer(self._run(scripts.PUT, *binding, header.write() + view), key, job)
            return
        for _ in range(UPLOADS):
            answer = self._run(scripts.HOLD, *binding, header.size)
            if answer == b"missing":
                self._upload(key, header, view)
                answer = self._run(scripts.PUT, *binding, header.write())
            if answer != b"missing":
                self._answer(answer, key, job)
                return
        raise FleetUnreachableError(f"Redis at {self.server.shown} loses chunks of {key} as they are written")

    def get(self, key: str) -> bytes:
        stored = self._read(self._name("artifact", checked_key(key)))
        if stored is None:
            raise ArtifactMissingError(key)
        header = _Header.read(stored[: scripts.HEADER_BYTES])
        if header.chunks:
            data = b"".join(self._read(name) or b"" for name in self._chunks(key, header))
        else:
            data = stored[scripts.HEADER_BYTES :]
        if len(data) != header.size or _digest(data) != header.digest:
            self._run(scripts.DISCARD, key, header.digest)
            raise ArtifactMissingError(key)
        return data

    def has(self, keys: Sequence[str]) -> list[bool]:
        return [found == 1 for found in self._run(scripts.HAS, *map(checked_key, keys))]

    def hold(self, key: str, *, job: str, lifetime: float) -> None:
        binding = (checked_job(job), checked_key(key), milliseconds(lifetime), self.job_limit)
        self._answer(self._run(scripts.HOLD, *binding, 0), key, job)

    def drop(self, job: str, keys: Sequence[str]) -> None:
        self._run(scripts.DROP, checked_job(job), *map(checked_key, keys))

    def release(self, job: str, *, keep: Collection[str] = ()) -> None:
        self._run(scripts.RELEASE, checked_job(job), milliseconds(RELEASED_FOR), *keep)

    def usage(self, job: str) -> dict[str, int]:
        pairs = self._run(scripts.USAGE, checked_job(job))
        counts: dict[str, int] = {}
        for key, size in zip(pairs[::2], pairs[1::2], strict=True):
            if key != b"total":
                kind = kind_of(key.decode())
                counts[kind] = counts.get(kind, 0) + int(size)
        return counts

    def claim(self, key: str, owner: str, seconds: float) -> Claim:
        return Claim(self._run(scripts.CLAIM, checked_key(key), owner, milliseconds(seconds)).decode())

    def unclaim(self, key: str, owner: str) -> None:
        self._run(scripts.UNCLAIM, checked_key(key), owner)

    def _name(self, kind: str, name: str) -> str:
        return f"{self.namespace}:{kind}:{name}"

    def _chunks(self, key: str, header: _Header) -> list[str]:
        return [self._name("chunk", f"{key}:{header.digest}:{number}") for number in range(header.chunks)]

    def _read(self, name: str) -> bytes | None:
        with self.server.errors():
            value = self.client.get(name)
        assert not isinstance(value, str), "the client was made with decode_responses"
        return value

    def _upload(self, key: str, header: _Header, view: memoryview) -> None:
        with self.server.errors():
            for number, name in enumerate(self._chunks(key, header)):
                part = view[number * CHUNK_BYTES : (number + 1) * CHUNK_BYTES]
                self.client.set(name, part, px=milliseconds(UPLOAD_LIFETIME), nx=True)

    def _run(self, script: str, *arguments: Any) -> Any:
        with self.server.errors():
            return self.client.register_script(script)(keys=[self.namespace], args=arguments)

    def _answer(self, answer: bytes, key: str, job: str) -> None:
        if answer == b"released":
            raise JobReleasedError(job)
        if answer == b"too large":
            raise ArtifactsTooLargeError(job, self.job_limit)
        if answer == b"missing":
            raise ArtifactMissingError(key)


def _digest(data: bytes | memoryview) -> str:
    return hashlib.blake2b(data, digest_size=16).hexdigest()
