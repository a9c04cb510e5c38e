"""What a pass is, and how several run one after another."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import onnx_ir as ir

from ..model import clean


class CannotLowerError(Exception):
    """Raised inside a pass: this node is left as it is, for the stated reason."""


@dataclass(frozen=True)
class Pass:
    """One exact rewrite.

    `apply` changes the model in place and says which nodes it rewrote and which it left, and why. The model
    has been through `prepare`, so that constants are initialisers and shapes are known; a pass keeps that so.
    """

    name: str
    what: str
    """One line for the list of passes."""
    apply: Callable[[ir.Model], Outcome]


@dataclass
class Outcome:
    """What a pass did: nodes rewritten, and nodes left with the reason, both as `describe` gives them."""

    rewritten: list[str] = field(default_factory=list)
    left: dict[str, str] = field(default_factory=dict)

    def reasons(self, shown: int = 2) -> list[str]:
        """A line for each reason: how many nodes were left for it, and the first of them."""
        nodes: dict[str, list[str]] = {}
        for node, why in self.left.items():
            nodes.setdefault(why, []).append(node)
        return [
            f"{', '.join(names[:shown])}{f' and {len(names) - shown} more' if len(names) > shown else ''}: {why}"
            for why, names in nodes.items()
        ]


def run_passes(model: ir.Model, passes: Sequence[Pass]) -> dict[str, Outcome]:
    """Run passes in order on a prepared model, in place; the outcome of each, by its name.

    Of a pass that runs again later: all that it rewrote, and what it left at last.
    """
    outcomes: dict[str, Outcome] = {}
    for step in passes:
        found = step.apply(model)
        before = outcomes.pop(step.name, Outcome())
        outcomes[step.name] = Outcome([*before.rewritten, *found.rewritten], found.left)
        clean(model)
    return outcomes
