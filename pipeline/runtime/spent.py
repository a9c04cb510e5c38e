"""What a model's runs took besides running."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Recovery:
    """A session that was made again on its rung of the ladder after a fault, and the run repeated."""

    rung: str
    model: str
    reason: str

    def __str__(self) -> str:
        return f"{self.model} was opened again on {self.rung} and the run repeated: {self.reason}"


@dataclass(frozen=True)
class Spent:
    """`first_seconds`: in which sessions were made and ran for the first time. `recoveries`: sessions made again."""

    first_seconds: float = 0.0
    recoveries: tuple[Recovery, ...] = ()
