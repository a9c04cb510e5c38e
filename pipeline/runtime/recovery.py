"""A model that outlives its sessions: made when first wanted, made again after a fault of its device."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from ..errors import DeviceFaultError
from ..packs.manifest import ModelSpec
from .arena import ARENA
from .binding import Fixed
from .faults import Fault
from .ladder import LOST, Ladder
from .places import Fall, Place
from .providers import Rung
from .residents import Residents
from .session import Array, Session
from .spent import Recovery, Spent

PROVEN = 100
"""Good runs after which a session that was made again counts as sound: the next fault is a new one."""

AGAIN = 60.0
"""Seconds after which a rung is tried again whose device had too little memory left: other processes come and go, and a
worker lives for long."""

SessionMaker = Callable[..., Session]


class ManagedModel:
    """One model of a pack. Its runs may come from several threads.

    After a fault (out of memory, device lost, driver reset) the session is made again on the same rung, once, and the
    run repeated; after another one without `PROVEN` good runs in between, or where the device is lost to this
    process, on the next rung of the ladder.

    Args:
        path: the .onnx file. spec: its tensors. ladder: where it may run.
        residents: the process's sessions. memory: bytes that they may take together, None for no bound.
        predicted_bytes: what a session of it takes.
        make: makes a session. clock: in seconds. Others in tests.

    Raises (by `run`, and by what needs a session):
        PackError, ModelError, ProviderError, RuntimeMissingError: see Session.
        DeviceFaultError: the fault stayed, and no rung is left. RunEndedError: see `terminate`.
    """

    def __init__(
        self,
        path: Path,
        spec: ModelSpec,
        ladder: Ladder,
        residents: Residents,
        memory: int | None,
        predicted_bytes: int,
        make: SessionMaker = Session,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.predicted_bytes = predicted_bytes
        self._path = path
        self._spec = spec
        self._ladder = ladder
        self._residents = residents
        self._memory = memory
        self._make = make
        self._clock = clock
        self._since = 0.0  # when the session was made
        self._lock = threading.RLock()
        self._session: Session | None = None
        self._runs = 0  # under way
        self._good = 0  # runs of this session
        self._start: Rung | None = None
        self._falls: tuple[Fall, ...] = ()
        self._repaired = False
        self._thread = threading.local()

    @property
    def place(self) -> Place:
        return self._opened().place

    @property
    def is_open(self) -> bool:
        """Whether it holds a session."""
        return self._session is not None

    def side(self, role: str) -> int:
        return self._opened().side(role)

    def spent(self) -> Spent:
        """What this thread's runs took besides running, since it asked last."""
        found: Spent = getattr(self._thread, "spent", Spent())
        self._thread.spent = Spent()
        return found

    def run(self, inputs: Mapping[str, Array], fixed: Fixed | None = None) -> dict[str, Array]:
        """Run once, after a fault again; see Session.run."""
        while (outputs := self._attempt(inputs, fixed)) is None:
            pass
        return outputs

    def _attempt(self, inputs: Mapping[str, Array], fixed: Fixed | None) -> dict[str, Array] | None:
        """One run; None: a fault, after which it is worth another."""
        session, first = self._begin()
        begun = time.perf_counter()
        try:
            outputs = session.run(inputs, fixed)
        except DeviceFaultError as error:
            self._recover(session, error)
            return None  # with this frame and the error goes what holds the failed session, before the next is made
        finally:
            with self._lock:
                self._runs -= 1
            if first:
                self._spend(seconds=time.perf_counter() - begun)
        with self._lock:
            if session is self._session:
                self._good += 1
        return outputs

    def terminate(self) -> None:
        """End runs that are under way, from another thread; they raise RunEndedError."""
        session = self._session
        if session is not None:
            session.terminate()

    def close(self) -> bool:
        """Let the session go unless a run is under way; whether it did. The next run makes another."""
        # Never waits: who asks may hold the lock that a run of this model waits for.
        if not self._lock.acquire(blocking=False):
            return False
        try:
            if self._runs or self._session is None:
                return False
            self._drop()
            return True
        finally:
            self._lock.release()

    def _spend(self, seconds: float = 0.0, *recoveries: Recovery) -> None:
        found: Spent = getattr(self._thread, "spent", Spent())
        self._thread.spent = Spent(found.first_seconds + seconds, (*found.recoveries, *recoveries))

    def _begin(self) -> tuple[Session, bool]:
        """The session for a run that is counted from now on, and whether none has ended well on it yet."""
        while True:
            session = self._opened()
            with self._lock:
                if session is self._session:
                    self._runs += 1
                    self._residents.used(self)
                    return session, self._good == 0

    def _opened(self) -> Session:
        session = self._session
        if session is not None and not self._may_climb(session):
            return session
        begun = time.perf_counter()
        with self._residents.opening, self._lock:
            if self._session is not None and not self._runs and self._may_climb(self._session):
                self._drop()
            if self._session is None:
                if self._memory is not None:
                    self._residents.make_room(self, self._memory)
                try:
                    self._session = self._made()
                except DeviceFaultError:
                    self._residents.release_others(self)
                    self._session = self._made()
                self._good, self._since = 0, self._clock()
                self._residents.used(self)
            session = self._session
        self._spend(seconds=time.perf_counter() - begun)
        return session

    def _may_climb(self, session: Session) -> bool:
        """Whether a rung above the session's may have memory for it again."""
        return any(fall.passing for fall in session.place.falls) and self._clock() - self._since >= AGAIN

    def _made(self) -> Session:
        return self._make(
            self._path,
            self._spec,
            self._ladder,
            start=self._start,
            falls=self._falls,
            make_room=lambda: self._residents.release_others(self),
        )

    def _drop(self) -> None:
        self._session = None
        self._residents.closed(self)
        ARENA.released()

    def _recover(self, failed: Session, error: DeviceFaultError) -> None:
        """Make place for another session, on this rung or the next.

        Raises:
            DeviceFaultError: it was tried, and there is no other rung.
        """
        with self._lock:
            if failed is not self._session:  # another thread met the same fault first
                return
            rung, again = failed.place.rung, self._repaired and self._good < PROVEN
            lost = self._ladder.lost.check(rung)
            self._drop()
            below = self._ladder.below(rung) if again or lost else rung
            if below is None:
                self._repaired = False  # whoever runs it next may find that the fault has passed
                raise error
            self._start, self._repaired = below, below == rung
            if below != rung:
                reason = LOST if lost else f"{error.fault} again after it was opened anew"
                self._falls = (*failed.place.falls, Fall(str(rung), self._path.name, reason))
            else:
                self._spend(0.0, Recovery(str(rung), self._path.name, str(error.fault)))
        if error.fault == Fault.MEMORY:
            self._residents.release_others(self)
