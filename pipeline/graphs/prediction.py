"""What a session is predicted to take, and how many processes fit in a memory. Arithmetic alone: workers use it, and
need no `onnx`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ..errors import GraphError

RUNTIME = 3 << 20
"""Bytes that ONNX Runtime allocates for itself, once a process (measured: 1 to 5 MiB with 1.32). Its code is a file's
pages, which the machine's processes share."""

SHARE = 0.8
"""Part of a machine's memory that workers may take, unless told otherwise."""


@dataclass(frozen=True)
class Prediction:
    """Bytes of memory that stay resident once a session has run at least twice."""

    weights: int
    """Constants, as the kernels want them."""
    loading: int
    """Left over from loading: weights that were laid out anew, freed, but kept by the C library (glibc's default)."""
    activations: int
    """Values, in the arena and in the planned block."""
    workspace: int
    """Largest scratch buffer of a kernel."""
    runtime: int
    """ONNX Runtime itself, once a process."""

    @property
    def session(self) -> int:
        """What the session adds to a process that has ONNX Runtime already."""
        return self.weights + self.loading + self.activations + self.workspace

    @property
    def total(self) -> int:
        """All of it."""
        return self.session + self.runtime

    def to_json(self) -> dict[str, int]:
        """Each term, and the total."""
        terms = ("weights", "loading", "activations", "workspace", "runtime", "total")
        return {name: getattr(self, name) for name in terms}


def sessions_that_fit(predictions: Iterable[Prediction], memory_bytes: int, *, share: float = SHARE) -> int:
    """How many workers fit in a machine's memory, each a process that holds one session of every model given.

    Args:
        predictions: one a model that a worker holds.
        memory_bytes: of the machine, or of the container's limit.
        share: part of it that the workers may take, above 0 and at most 1.

    Returns:
        0 when not even one fits.

    Raises:
        GraphError: no prediction, or a share out of range.
    """
    listed = list(predictions)
    if not listed:
        raise GraphError("no model is given; give at least one model that a worker holds")
    return processes_that_fit(sum(each.session for each in listed) + listed[0].runtime, memory_bytes, share=share)


def processes_that_fit(process_bytes: int, memory_bytes: int, *, share: float = SHARE) -> int:
    """How many processes of one size fit in a share of a memory; 0 when not even one does.

    Raises:
        GraphError: the share is not above 0 and at most 1, or a process takes nothing.
    """
    if not 0 < share <= 1 or process_bytes <= 0:
        raise GraphError(
            f"{process_bytes} bytes a process and a share of {share}: give a size above 0, a share in 0..1"
        )
    return int(memory_bytes * share // process_bytes)
