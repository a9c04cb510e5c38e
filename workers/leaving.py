"""How a worker that was told to stop (SIGTERM) takes its running steps with it: they may finish within the grace
period, and are handed back to the fleet after it.

Celery's own soft shutdown sleeps in the main process for all of the grace period, done or not, and then kills.
Here the processes of the pool see for themselves, in memory that they share with the main process.
"""

from __future__ import annotations

import mmap
import threading

_flag = mmap.mmap(-1, 1)  # anonymous and shared: made before the fork, seen by every process after it


def is_over() -> bool:
    """Whether the grace period has passed."""
    return _flag[0] != 0


def hand_back() -> None:
    """Let every running step of this worker be handed back."""
    _flag[0] = 1


def hand_back_in(seconds: float) -> None:
    """The same after a while; does not keep this process from ending."""
    timer = threading.Timer(seconds, hand_back)
    timer.daemon = True
    timer.start()
