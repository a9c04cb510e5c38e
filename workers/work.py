"""What a step has at hand: its job's artifacts, its lease, its models."""

from __future__ import annotations

import io
import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar

from pipeline.report import Report
from pipeline.settings import Settings
from pipeline.studio import Studio

from .artifacts import Claim
from .canvas import number_of
from .codec import decode, encode
from .errors import ArtifactMissingError, ArtifactsTooLargeError, FleetError
from .fleet import JOB_LIFETIME, SHARED, Fleet
from .jobs import LEASE
from .keys import Keys
from .lease import Lease
from .order import Order
from .patience import patiently

log = logging.getLogger(__name__)
T = TypeVar("T")


class Input(io.BytesIO):
    """An input's bytes under the name that the client's file had, for messages.

    `check` is called as they are read, so that decoding a long recording can be stopped.
    """

    def __init__(self, data: bytes, name: str, check: Callable[[], None]) -> None:
        super().__init__(data)
        self.name = name
        self._check = check

    def read(self, size: int | None = -1, /) -> bytes:
        self._check()
        return super().read(size)


class ArtifactsMissingError(Exception):
    """Several artifacts are gone at once."""

    def __init__(self, keys: Sequence[str]) -> None:
        super().__init__(f"missing: {', '.join(keys)}")
        self.keys = tuple(keys)


class WaitingError(Exception):
    """Another worker makes what this step would make; it is looked at again later."""


class NotReadyError(Exception):
    """What this step needs was taken back since it was sent; it is sent again in its turn."""


@dataclass
class Work:
    """What a step has at hand."""

    fleet: Fleet
    order: Order
    step: str
    lease: Lease
    studio: Studio
    report: Report = field(default_factory=Report)

    @cached_property
    def keys(self) -> Keys:
        return Keys(self.order)

    @property
    def settings(self) -> Settings:
        return self.keys.settings

    @property
    def number(self) -> int:
        """The step's number: of its chunk or segment."""
        return number_of(self.step)

    def patiently(self, action: Callable[[], T]) -> T:
        """Do it again while Redis is away, within limits; stop when the step shall stop."""
        return patiently(action, self.lease.check)

    def input(self, key: str, name: str) -> Input:
        """Raises ArtifactMissingError."""
        return Input(self.patiently(lambda: self.fleet.store.get(key)), name, self.lease.check)

    def get(self, key: str, kind: type[T]) -> T:
        """A value that an earlier step stored. Raises ArtifactMissingError."""
        return decode(self.patiently(lambda: self.fleet.store.get(key)), kind)

    def get_kept(self, key: str, kind: type[T]) -> T:
        """The same, of a value that later steps in this process will need again (see `value_cache`)."""
        return self.patiently(lambda: self.fleet.values.get(key, kind))

    def need(self, *keys: str) -> None:
        """Raises ArtifactsMissingError: some of these are gone, all that are."""
        found = self.patiently(lambda: self.fleet.store.has(keys))
        if missing := [key for key, there in zip(keys, found, strict=True) if not there]:
            raise ArtifactsMissingError(missing)

    def put(self, key: str, value: Any) -> None:
        data = encode(value)
        self.lease.check()
        self.patiently(lambda: self.fleet.store.put(key, data, job=self.order.job, lifetime=JOB_LIFETIME))

    def has(self, *keys: str) -> bool:
        """Whether all are there; they are held by this job from then on, so that no other's end deletes them."""
        return self.patiently(lambda: self._has(*keys))

    def _has(self, *keys: str) -> bool:
        if not all(self.fleet.store.has(keys)):
            return False
        try:
            for key in keys:
                self.fleet.store.hold(key, job=self.order.job, lifetime=JOB_LIFETIME)
        except ArtifactMissingError:
            return False
        return True

    def share(self, key: str) -> None:
        """Keep an artifact beyond this job, where there is room for that."""
        try:
            self.patiently(lambda: self.fleet.store.hold(key, job=SHARED, lifetime=JOB_LIFETIME))
        except ArtifactsTooLargeError:
            log.warning("no room to keep %s beyond job %s", key, self.order.job)

    def shared(self, key: str, make: Callable[[], Any]) -> None:
        """Have an artifact that jobs share, made by one of them.

        Raises:
            WaitingError: another worker is making it.
        """
        store, owner = self.fleet.store, self.lease.owner

        def claim() -> Claim:
            return store.claim(key, owner, LEASE)

        while (answer := self.patiently(claim)) is Claim.MADE:
            if self.has(key):
                self.share(key)
                return
        if answer is Claim.TAKEN:
            raise WaitingError(key)
        try:
            with self.lease.also(claim):
                self.put(key, make())
        except BaseException:
            with suppress(FleetError):  # or it lapses by itself
                store.unclaim(key, owner)
            raise
        self.share(key)

    def progress(self, stage: str, done: int, total: int, part: str = "") -> None:
        """Tell the client (see `Lease.tell`), and stop here when the job was cancelled or its time is up."""
        self.lease.check()
        self.lease.tell(stage, part, done, total)
