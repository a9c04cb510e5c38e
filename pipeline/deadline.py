"""The time by which a film must be done."""

from __future__ import annotations

import math
from time import monotonic

from .errors import OutOfTimeError, SettingsError

LONGEST = 7 * 24 * 3600.0
"""Seconds: a week."""


def check_deadline(seconds: float | None) -> None:
    """Raises SettingsError: a number of seconds that is no deadline; None is none at all."""
    if seconds is not None and not 0 < seconds < LONGEST:
        raise SettingsError(f"deadline {seconds} is out of range; give seconds above 0, a week at most")


class Deadline:
    """Begins to run when it is made.

    Args:
        seconds: from now; None = for ever. Raises SettingsError: out of range.
    """

    def __init__(self, seconds: float | None) -> None:
        check_deadline(seconds)
        self.seconds = math.inf if seconds is None else seconds
        self._end = monotonic() + self.seconds

    def left(self) -> float:
        """Seconds; below 0 once it has passed."""
        return self._end - monotonic()

    def check(self, doing: str) -> None:
        """Raises OutOfTimeError: it has passed. `doing`: what was being done."""
        if self.left() < 0:
            raise OutOfTimeError(f"the film was not done within {self.seconds:g} s, it was at {doing}; give more time")
