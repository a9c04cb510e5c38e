"""Ctrl-C and termination as an exception, and not forgotten where other code swallows it."""

from __future__ import annotations

import signal
import threading

TYPE_CHECKING = False  # `typing` would be imported before an interruption is caught
if TYPE_CHECKING:
    from types import FrameType, TracebackType
    from typing import Any


class Interruption:
    """While active, SIGINT and SIGTERM raise KeyboardInterrupt in the main thread and are remembered.

    An extension module that is interrupted while it is imported raises ImportError instead: `signal` still
    says what really happened. Elsewhere than in the main thread it does nothing.

    `signal`: number of the signal that came, None while there was none.
    """

    def __init__(self) -> None:
        self.signal: int | None = None
        self._before: dict[int, Any] = {}

    @property
    def exit_code(self) -> int:
        """As shells have it: 130 for Ctrl-C, 143 for termination."""
        return 128 + (self.signal or signal.SIGINT)

    def __enter__(self) -> Interruption:
        if threading.current_thread() is threading.main_thread():
            self._before = {number: signal.signal(number, self._raise) for number in (signal.SIGINT, signal.SIGTERM)}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _raise(self, number: int, frame: FrameType | None) -> None:
        self.signal = number
        raise KeyboardInterrupt
