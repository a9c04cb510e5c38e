"""Commands and waiting, for tests of the fleet in containers."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from typing import TypeVar

WAIT = 180.0
"""Seconds after which what was waited for counts as never to come."""

T = TypeVar("T")


def sh(*command: str, timeout: float = 300, **options: object) -> str:
    """Output of a command. RuntimeError: it failed; says all that it said."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, **options)  # type: ignore[call-overload]
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} ended with {done.returncode}:\n{done.stdout}\n{done.stderr}")
    return str(done.stdout)


def wait_for(condition: Callable[[], T | None], message: Callable[[], str]) -> T:
    """The first true value of `condition`; the test fails with `message` where none comes."""
    end = time.monotonic() + WAIT
    while not (value := condition()):
        assert time.monotonic() < end, message()
        time.sleep(0.3)
    return value
