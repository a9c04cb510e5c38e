"""Waiting for a Redis that is away for a few seconds, as when it restarts."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from .errors import FleetUnreachableError

T = TypeVar("T")

PATIENCE = 30.0
"""Seconds after which it counts as gone."""

PAUSE = 0.2
"""Seconds between two tries."""


def patiently(action: Callable[[], T], check: Callable[[], None] = lambda: None) -> T:
    """Do it again while Redis is away, for `PATIENCE` seconds at most; it must be safe to do twice.

    Args:
        check: called before each try; what it raises ends them.
    """
    end = time.monotonic() + PATIENCE
    while True:
        check()
        try:
            return action()
        except FleetUnreachableError:
            if time.monotonic() > end:
                raise
            time.sleep(PAUSE)
