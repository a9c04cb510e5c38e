"""A disk that is soon full: real writes that the system refuses, without a superuser's rights."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def small_disk(room: int) -> Iterator[None]:
    """Files that this process writes hold so many bytes at most: more is refused with EFBIG, which stands for ENOSPC
    (both mean the same to whoever writes a film; see `pipeline.stages.film.FULL`)."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (room, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
