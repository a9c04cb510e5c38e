"""The contract of an artifact store: opaque bytes under keys that name their content."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from enum import StrEnum

Data = bytes | bytearray | memoryview

JOB_LIMIT = 4 << 30
"""Bytes that one job may hold by default."""

RELEASED_FOR = 24 * 3600.0
"""Seconds for which a released job's late tasks are refused; longer than any task waits in a queue."""

_KEY = re.compile(r"[a-z][a-z0-9-]*:[A-Za-z0-9._:/-]{1,200}")
_JOB = re.compile(r"[A-Za-z0-9._-]{1,100}")


class Claim(StrEnum):
    """Answer to `ArtifactStore.claim`."""

    YOURS = "yours"
    TAKEN = "taken"
    MADE = "made"


class ArtifactStore(ABC):
    """Opaque bytes, each under a key "kind:name", held by jobs, for a lifetime.

    - A key names its content (hashes of inputs, settings, revisions). Putting it again keeps the bytes that
      are there, so a task that runs twice does no harm. Damaged or lost bytes are replaced.
    - An artifact lives as long as the longest lifetime asked for it, in seconds, and while a job holds it.
      `put` and `hold` make a job a holder, for that lifetime. Nothing is kept without a lifetime.
    - A reader gets all the bytes as they were put, or `ArtifactMissingError`; never a part.
    - Every method may be called again after an error, from any thread and after a fork.

    Every method raises FleetUnreachableError or FleetFullError where a server is behind the store, and
    ValueError for a key, job or lifetime that is no such thing.
    """

    def __init__(self, job_limit: int = JOB_LIMIT) -> None:
        self.job_limit = job_limit

    @abstractmethod
    def put(self, key: str, data: Data, *, job: str, lifetime: float) -> None:
        """Store bytes, held by a job. Ends the claim on the key.

        Raises ArtifactsTooLargeError: the job would hold more than `job_limit` bytes. JobReleasedError.
        """

    @abstractmethod
    def get(self, key: str) -> bytes:
        """The bytes. Raises ArtifactMissingError."""

    @abstractmethod
    def has(self, keys: Sequence[str]) -> list[bool]:
        """Which of these are there, every part of them."""

    @abstractmethod
    def hold(self, key: str, *, job: str, lifetime: float) -> None:
        """Make the job a holder of what another made. Raises as `put`, and ArtifactMissingError."""

    @abstractmethod
    def drop(self, job: str, keys: Sequence[str]) -> None:
        """The job holds these no longer; what nobody holds is deleted at once."""

    @abstractmethod
    def release(self, job: str, *, keep: Collection[str] = ()) -> None:
        """The job is over: drop all it holds but these kinds, and take nothing more from it (late tasks).

        To forget a job, release it without `keep`, also after an earlier release.
        """

    @abstractmethod
    def usage(self, job: str) -> dict[str, int]:
        """Bytes that the job holds, by kind."""

    @abstractmethod
    def claim(self, key: str, owner: str, seconds: float) -> Claim:
        """Become the one who makes a shared artifact.

        MADE: it is there. YOURS: make it, and claim again with the same owner before `seconds` have passed
        where that takes longer. TAKEN: another is making it; ask again later, for its claim may lapse.
        """

    @abstractmethod
    def unclaim(self, key: str, owner: str) -> None:
        """Give up a claim without having put the artifact; another's claim stays."""


def kind_of(key: str) -> str:
    """What stands before the colon of a key."""
    return key.partition(":")[0]


def checked_key(key: str) -> str:
    """The key. Raises ValueError: it is none."""
    if not _KEY.fullmatch(key):
        raise ValueError(f"artifact key {key!r} is not kind:name")
    return key


def checked_job(job: str) -> str:
    """The job's id. Raises ValueError: it is none."""
    if not _JOB.fullmatch(job):
        raise ValueError(f"job id {job!r} is not 1 to 100 letters, digits, dots, dashes or underscores")
    return job


def milliseconds(lifetime: float) -> int:
    """A lifetime in whole milliseconds, at least one."""
    if not 0 < lifetime < 1e9:
        raise ValueError(f"lifetime {lifetime} is not a number of seconds above 0")
    return max(1, round(lifetime * 1000))
