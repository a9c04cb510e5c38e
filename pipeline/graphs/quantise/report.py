"""What was quantised, and what it costs and brings."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from ..differences import number


@dataclass(frozen=True)
class Part:
    """One layer, or layers that are quantised together."""

    nodes: Sequence[str]
    weights: int
    """Numbers in its weights."""
    errors: Mapping[str, float]
    """What it does to the result when it alone is quantised, by its form ("int8", "4 bits"); empty where that was not
    measured."""
    choice: str
    """The form taken."""
    why: str = ""
    """Why it was left in a dearer form; empty where it was not."""
    speedup: float | None = None
    """Seconds in float32 over seconds quantised, by itself on this machine; None where it was not measured."""


@dataclass(frozen=True)
class Variant:
    """A whole graph: one of those to choose from."""

    name: str
    weight_bytes: int
    scores: Mapping[str, float]
    """Quality of what it makes, by the measure's name."""
    speedup: float | None = None
    """Seconds of the float32 graph over its own, alternating on this machine; None where it was not measured."""


@dataclass
class Report:
    """All choices, with their figures; judged on `judged`, never on weights."""

    what: str
    judged: str
    settings: Mapping[str, Any]
    variants: list[Variant] = field(default_factory=list)
    parts: list[Part] = field(default_factory=list)
    left: dict[str, str] = field(default_factory=dict)
    """Nodes that could not be quantised at all, each with the reason."""

    def to_json(self) -> dict[str, Any]:
        """Plain values; six digits, and text for what is not finite."""
        made: dict[str, Any] = _plain(asdict(self))
        return made

    def to_markdown(self) -> str:
        """The same as tables."""
        settings = ", ".join(f"{name} {value}" for name, value in self.settings.items())
        first = max((variant.weight_bytes for variant in self.variants), default=1)
        scores = list(self.variants[0].scores) if self.variants else []
        rows = [
            [
                variant.name,
                f"{variant.weight_bytes / 1e6:.2f}",
                f"{first / max(1, variant.weight_bytes):.2f}",
                _times(variant.speedup),
                *(_short(variant.scores[score]) for score in scores),
            ]
            for variant in self.variants
        ]
        lines = [f"## {self.what}", "", f"Judged on {self.judged}. {settings}.", ""]
        lines += _table(["graph", "weights, MB", "times smaller", "times faster", *scores], rows)
        forms = list(dict.fromkeys(form for part in self.parts for form in part.errors))
        rows = [
            [
                ", ".join(part.nodes[:2]) + (f" and {len(part.nodes) - 2} more" if len(part.nodes) > 2 else ""),
                str(part.weights),
                *(_short(part.errors[form]) if form in part.errors else "" for form in forms),
                _times(part.speedup),
                part.choice,
                part.why,
            ]
            for part in self.parts
        ]
        alone = [f"error alone, {form}" for form in forms]
        lines += ["", *_table(["layers", "numbers", *alone, "times faster", "choice", "reason"], rows)]
        if self.left:
            lines += ["", *_table(["not quantised", "reason"], [[name, why] for name, why in self.left.items()])]
        return "\n".join(lines) + "\n"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    return [f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *rows)]


def _times(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


def _short(value: float) -> str:
    return f"{value:.4g}" if math.isfinite(value) else str(value)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _plain(item) for name, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_plain(item) for item in value]
    return number(value) if isinstance(value, float) else value
