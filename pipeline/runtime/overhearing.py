"""What ONNX Runtime logs while a session is made: the reason why a provider is not given is nowhere else."""

from __future__ import annotations

import os
import re
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from .messages import one_line

_RECORD = re.compile(r"(?:\x1b\[[0-9;]*m)?\S+ \S+ \[([VIWEF]):onnxruntime:[^]]*\] ")
"""What begins a record: colour, date, time, severity, logger and place."""

_END = "\x1b[m"

_lock = threading.Lock()


@contextmanager
def overheard() -> Iterator[list[str]]:
    """Records of ONNX Runtime's log, errors first, one line each; the list is filled at the end.

    It writes them to the standard error of the process, so that is read meanwhile. What others write there is passed
    on afterwards.
    """
    records: list[str] = []
    with _lock, tempfile.TemporaryFile() as caught:
        sys.stderr.flush()
        kept = os.dup(2)
        os.dup2(caught.fileno(), 2)
        try:
            yield records
        finally:
            sys.stderr.flush()
            os.dup2(kept, 2)
            os.close(kept)
            caught.seek(0)
            found, others = sorted_out(caught.read().decode("utf-8", "replace"))
            records += found
            if others:
                os.write(2, others.encode())


def sorted_out(text: str) -> tuple[list[str], str]:
    """Records in a text, errors first, one line each; and the rest of it."""
    first, *parts = _RECORD.split(text)
    records, others = [], first
    for severity, part in zip(parts[::2], parts[1::2], strict=True):
        message, _, after = part.partition(_END) if _END in part else part.partition("\n")
        records.append((severity not in "EF", one_line(message)))
        others += after.removeprefix("\n")
    return [message for _, message in sorted(records, key=lambda record: record[0])], others
