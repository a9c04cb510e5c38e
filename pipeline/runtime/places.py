"""Where a model runs, and what is to be said of it."""

from __future__ import annotations

from dataclasses import dataclass

from .placement import Placement
from .providers import Rung


@dataclass(frozen=True)
class Fall:
    """A rung that did not run a model, or not all of it.

    `model`: its file; None where the rung runs nothing on this machine. `kept`: it runs there nevertheless, in part.
    `passing`: it may run there later, as its device only had too little memory left.
    """

    rung: str
    model: str | None
    reason: str
    kept: bool = False
    passing: bool = False

    def __str__(self) -> str:
        how = "runs only a part of" if self.kept else "does not run"
        return f"{self.rung} {how} {self.model or 'here'}: {self.reason}"


@dataclass(frozen=True)
class Place:
    """Where a model runs.

    `model`: its file. `falls`: what is to be said of rungs above, and of this one where it runs only a part.
    `placement` and `trial_seconds`: of the run that tried it, the first one, so what the provider prepares is in it;
    None on the CPU, which needs no trial.
    """

    model: str
    rung: Rung
    falls: tuple[Fall, ...] = ()
    placement: Placement | None = None
    trial_seconds: float | None = None
