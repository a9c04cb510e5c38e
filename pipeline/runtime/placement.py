"""Where the nodes of a session really ran, read from ONNX Runtime's profile of one run.

A provider takes the nodes it can; the others go to the CPU without a word. ONNX Runtime also keeps arithmetic on
shapes and indices on the CPU on purpose: such nodes do not count, others do by the work in them.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Shape = Sequence[int]

COUNTS = 0.05
"""Share of a run's work that may be elsewhere before it counts as a fall-back."""

UNSEEN_COUNTS = 10_000_000
"""Operations elsewhere that count where the provider's own work is not seen, because it compiles nodes into one.
About ten milliseconds of one core."""

FLOATS = frozenset({"float", "float16", "bfloat16", "double"})
"""Types of tensors, as the profile names them, that carry the model's values."""


@dataclass(frozen=True)
class Placement:
    """Where a run's nodes ran.

    `nodes`: how many ran at all. `elsewhere`: of those that ran on another provider than the one asked for, how many
    of each operator. `share`: of the run's work in them, 0 to 1; None where the provider's own work is not seen.
    `work`: operations in them. `copies`: transfers between host and device.
    """

    provider: str
    nodes: int
    elsewhere: Mapping[str, int]
    share: float | None
    work: int
    copies: int

    @property
    def whole(self) -> bool:
        """Whether the provider did the work, but for what is too small to count."""
        return self.share <= COUNTS if self.share is not None else self.work <= UNSEEN_COUNTS

    @property
    def mostly_elsewhere(self) -> bool:
        """Whether more than half of the work, as far as it is seen, is done elsewhere."""
        return self.share is not None and self.share > 0.5

    def __str__(self) -> str:
        count = sum(self.elsewhere.values())
        if not count:
            return f"all {self.nodes} nodes"
        most = sorted(self.elsewhere.items(), key=lambda item: (-item[1], item[0]))
        names = ", ".join(name if n == 1 else f"{n} {name}" for name, n in most[:4])
        names += ", …" if len(most) > 4 else ""
        part = (
            f"{self.share:.1%} of the work" if self.share is not None else f"{self.work / 1e6:.1f} million operations"
        )
        return f"{count} of {self.nodes} nodes elsewhere ({names}; {part})"


def read_placement(profile: Path, provider: str) -> Placement:
    """The placement of the run in a profile that ONNX Runtime wrote.

    Args:
        profile: the JSON file. provider: the one asked for, as ONNX Runtime names it.
    """
    return placement(json.loads(profile.read_text("utf-8")), provider)


def placement(events: Iterable[Mapping[str, Any]], provider: str) -> Placement:
    """The same, of a profile's events."""
    here = elsewhere = nodes = copies = 0
    seen = True
    operators: Counter[str] = Counter()
    for event in events:
        detail = event.get("args") or {}
        if event.get("cat") != "Node" or not detail.get("provider"):
            continue
        nodes += 1
        name = str(detail.get("op_name", ""))
        work = node_work(name, _tensors(detail, "input_type_shape"), _tensors(detail, "output_type_shape"))
        if name.startswith("Memcpy"):
            copies += 1
        elif detail["provider"] != provider:
            operators[name] += 1
            elsewhere += work
        elif _compiled(name, event):
            seen = False
        else:
            here += work
    share = elsewhere / max(1, here + elsewhere) if seen else None
    return Placement(provider, nodes, dict(operators), share, elsewhere, copies)


def node_work(operator: str, inputs: Sequence[tuple[str, Shape]], outputs: Sequence[tuple[str, Shape]]) -> int:
    """Operations of a node, roughly: a multiply-add is two; what only computes or moves counts its elements. Nodes
    without floating-point tensors (shapes, indices, masks) are no work.

    Args:
        inputs, outputs: type and shape of each tensor.
    """
    floats = [math.prod(shape) for kind, shape in (*inputs, *outputs) if kind in FLOATS]
    if not floats:
        return 0
    produced = sum(math.prod(shape) for _, shape in outputs)
    shapes = [shape for _, shape in inputs]
    if "ConvTranspose" in operator and len(shapes) > 1:
        return 2 * math.prod(shapes[0]) * math.prod(shapes[1][1:])
    if "Conv" in operator:
        weights = shapes[3] if operator.startswith("QLinear") and len(shapes) > 3 else shapes[min(1, len(shapes) - 1)]
        return 2 * produced * math.prod(weights[1:])
    if ("MatMul" in operator or "Gemm" in operator) and shapes[0]:
        return 2 * produced * shapes[0][-1]
    if operator == "GridSample":
        return produced * 2 ** len(outputs[0][1])
    return sum(floats)


def _compiled(name: str, event: Mapping[str, Any]) -> bool:
    """Whether a node stands for a part of the graph that the provider compiled: its operator bears the name of the
    provider's own making, and the event repeats it."""
    return "subgraph" in name or str(event.get("name", "")).startswith(str(event["args"]["provider"]))


def _tensors(detail: Mapping[str, Any], key: str) -> list[tuple[str, Shape]]:
    found = detail.get(key) or []
    return [(str(kind), shape) for tensor in found for kind, shape in tensor.items()]
