"""Artifacts in this process: for tests, and for a fleet of threads."""

from __future__ import annotations

import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from ..errors import ArtifactMissingError, ArtifactsTooLargeError, JobReleasedError
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


@dataclass
class _Artifact:
    data: bytes
    ends: float


class MemoryStore(ArtifactStore):
    """See `ArtifactStore`. `clock` gives seconds."""

    def __init__(self, job_limit: int = JOB_LIMIT, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(job_limit)
        self._clock = clock
        self._lock = threading.RLock()
        self._artifacts: dict[str, _Artifact] = {}
        self._holders: dict[str, dict[str, float]] = defaultdict(dict)
        self._claims: dict[str, tuple[str, float]] = {}
        self._released: dict[str, float] = {}

    def put(self, key: str, data: Data, *, job: str, lifetime: float) -> None:
        with self._lock:
            found = self._find(checked_key(key))
            if found is None:
                found = _Artifact(bytes(data), ends=0)
            self._bind(key, found, job, lifetime)
            self._artifacts[key] = found
            self._claims.pop(key, None)

    def get(self, key: str) -> bytes:
        with self._lock:
            found = self._find(checked_key(key))
        if found is None:
            raise ArtifactMissingError(key)
        return found.data

    def has(self, keys: Sequence[str]) -> list[bool]:
        with self._lock:
            return [self._find(checked_key(key)) is not None for key in keys]

    def hold(self, key: str, *, job: str, lifetime: float) -> None:
        with self._lock:
            found = self._find(checked_key(key))
            if found is None:
                raise ArtifactMissingError(key)
            self._bind(key, found, job, lifetime)

    def drop(self, job: str, keys: Sequence[str]) -> None:
        checked_job(job)
        with self._lock:
            self._sweep()
            for key in keys:
                if job in self._holders.get(checked_key(key), {}):
                    del self._holders[key][job]
                    if not self._holders[key]:
                        del self._holders[key]
                        self._artifacts.pop(key, None)

    def release(self, job: str, *, keep: Collection[str] = ()) -> None:
        with self._lock:
            self._released[checked_job(job)] = self._clock() + RELEASED_FOR
            self.drop(job, [key for key in self._held(job) if kind_of(key) not in keep])

    def usage(self, job: str) -> dict[str, int]:
        counts: Counter[str] = Counter()
        with self._lock:
            self._sweep()
            for key in self._held(checked_job(job)):
                counts[kind_of(key)] += len(self._artifacts[key].data)
        return dict(counts)

    def claim(self, key: str, owner: str, seconds: float) -> Claim:
        lifetime = milliseconds(seconds) / 1000
        with self._lock:
            if self._find(checked_key(key)) is not None:
                return Claim.MADE
            if self._claims.get(key, (owner, 0))[0] != owner:
                return Claim.TAKEN
            self._claims[key] = owner, self._clock() + lifetime
            return Claim.YOURS

    def unclaim(self, key: str, owner: str) -> None:
        with self._lock:
            if self._claims.get(checked_key(key), (None, 0))[0] == owner:
                del self._claims[key]

    def _find(self, key: str) -> _Artifact | None:
        self._sweep()
        return self._artifacts.get(key)

    def _held(self, job: str) -> list[str]:
        return [key for key, holders in self._holders.items() if job in holders and key in self._artifacts]

    def _bind(self, key: str, artifact: _Artifact, job: str, lifetime: float) -> None:
        """Make the job a holder, if it may be one."""
        ends = self._clock() + milliseconds(lifetime) / 1000
        if checked_job(job) in self._released:
            raise JobReleasedError(job)
        others = sum(len(self._artifacts[held].data) for held in self._held(job) if held != key)
        if others + len(artifact.data) > self.job_limit:
            raise ArtifactsTooLargeError(job, self.job_limit)
        artifact.ends = max(artifact.ends, ends)
        self._holders[key][job] = max(self._holders[key].get(job, 0), ends)

    def _sweep(self) -> None:
        """Forget what has outlived its lifetime."""
        now = self._clock()
        self._artifacts = {key: found for key, found in self._artifacts.items() if found.ends > now}
        self._claims = {key: claim for key, claim in self._claims.items() if claim[1] > now}
        self._released = {job: ends for job, ends in self._released.items() if ends > now}
        for key, holders in list(self._holders.items()):
            left = {job: ends for job, ends in holders.items() if ends > now}
            if left:
                self._holders[key] = left
            else:
                del self._holders[key]
