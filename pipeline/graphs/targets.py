"""What runtimes lack, by operator, version, rank and type: the table `targets.json`, with its sources."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

import onnx
import onnx_ir as ir

from ..errors import GraphError
from .lower.channels_by_four import read_by_threes

TYPE_NAMES = {"float": "float32", "double": "float64"}

FORMS: Mapping[str, Callable[[ir.Node], bool]] = {"channels by threes": read_by_threes}
"""What a limit may be about beside ranks: nodes of a form that the runtime takes and computes wrong."""


@dataclass(frozen=True)
class Target:
    """A runtime and what it can run."""

    name: str
    title: str
    versions: str
    """Releases that the table holds for."""
    version: str
    """The release that is meant when none is given."""
    source: str
    exact: bool
    """Whether an operator's kernel serves only the versions it states (ONNX Runtime), or all later ones too."""
    operators: Mapping[str, Mapping[str, str | None]]
    """By operator: versions, as `11-21` or `22+`, and types of the first input; null where no source states them."""
    types: str | None
    limits: tuple[Mapping[str, str], ...]

    def lacks(self, node: ir.Node, opset: int, version: str | None = None) -> str | None:
        """Why the target cannot run a node itself, or None when it can; unknown shapes and types are let pass.

        Args:
            opset: of the standard operators in the node's graph.
            version: of the runtime, such as `1.25`; the table's own when not given.
        """
        if node.domain not in ("", "ai.onnx"):
            return f"the operators of {node.domain} are not in the table"
        if node.op_type == "Constant":
            return None
        kernels = self.operators.get(node.op_type)
        if kernels is None:
            return "no kernel"
        since = _since(node.op_type, opset)
        served = next((key for key in kernels if _serves(key, since, self.exact)), None)
        if served is None:
            return f"no kernel for {node.op_type}-{since} (has {', '.join(kernels)})"
        first = node.inputs[0] if node.inputs else None
        allowed = kernels[served] or self.types
        if first is not None and first.dtype is not None and allowed is not None:
            name = TYPE_NAMES.get(first.dtype.name.lower(), first.dtype.name.lower())
            if name not in _types(allowed):
                return f"no {name} kernel"
        return next(
            (why for limit in self.limits if (why := _broken(limit, node, since, version or self.version))), None
        )


@cache
def table() -> Mapping[str, Any]:
    """The file's content."""
    text = resources.files(__package__).joinpath("targets.json").read_text(encoding="utf-8")
    return json.loads(text)


@cache
def target(name: str) -> Target:
    """A target of the table: cpu, cuda, webgpu or openvino.

    Raises:
        GraphError: no such target.
    """
    found = table()["targets"].get(name)
    if found is None:
        raise GraphError(f"no target {name!r}; give one of {', '.join(table()['targets'])}")
    plain = {key: found[key] for key in ("title", "versions", "version", "source", "exact", "operators")}
    return Target(name, types=found.get("types"), limits=tuple(found["limits"]), **plain)


def target_names() -> list[str]:
    """All targets of the table."""
    return list(table()["targets"])


def _types(listed: str) -> list[str]:
    groups = table()["types"]
    return [name for part in listed.split() for name in groups.get(part, part).split()]


def _since(operator: str, opset: int) -> int:
    try:
        return int(onnx.defs.get_schema(operator, opset, "").since_version)
    except onnx.defs.SchemaError:
        return opset


def _serves(key: str, since: int, exact: bool) -> bool:
    first, _, last = key.rstrip("+").partition("-")
    if key.endswith("+"):
        return since == int(first) if exact else since >= int(first)
    return int(first) <= since <= int(last or first)


def _broken(limit: Mapping[str, str], node: ir.Node, since: int, version: str) -> str | None:
    if limit["operator"] != node.op_type or not _serves(limit.get("opsets", "1-999"), since, True):
        return None
    if "before" in limit and _number(version) >= _number(limit["before"]):
        return None
    if "form" in limit:
        return limit["why"] if FORMS[limit["form"]](node) else None
    shape = node.inputs[0].shape if node.inputs and node.inputs[0] is not None else None
    grouped = "grouped_ranks" in limit and node.attributes.get_int("group", 1) > 1
    ranks = limit.get("grouped_ranks" if grouped else "ranks")
    if ranks is None:
        return limit["why"]
    if shape is None or _serves(ranks, len(shape), True):
        return None
    return f"{limit['why']} (rank {len(shape)})"


def _number(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".")[:2])
