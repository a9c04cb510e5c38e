"""A lower operator set: the same operators under the version that more runtimes have kernels for.

A runtime's kernel serves the versions it was registered for and no later one: onnxruntime-web's WebGPU provider,
for instance, has GridSample up to operator set 19, and one of set 20 runs on the CPU.
"""

from __future__ import annotations

import onnx
import onnx_ir as ir

from ..model import attribute, describe
from ..shapes import known_shape
from .passes import Outcome, Pass

CHANGED = frozenset({"DFT", "GroupNormalization"})
"""Operators whose meaning changed in a version from 17 to 22; all others that have a new one there took more types."""

OLD_MODES = {"linear": "bilinear", "cubic": "bicubic"}
"""GridSample's modes before operator set 20, where it knew pictures only."""


def operator_set_pass(version: int) -> Pass:
    """A pass that states the standard operators' set as `version` if every node allows it; a lower one stays.

    A node that does not is named in the outcome, and the graph is left as it is.
    """
    return Pass("operator-set", f"operator set {version}", lambda model: _apply(model, version))


def _apply(model: ir.Model, version: int) -> Outcome:
    outcome = Outcome()
    now = model.opset_imports[""]
    if now <= version:
        return outcome
    changing = []
    for node in model.graph:
        if node.domain:
            continue
        before = onnx.defs.get_schema(node.op_type, now)
        if before.since_version <= version:
            continue
        reason = _hindrance(node, version)
        if reason:
            outcome.left[describe(node)] = reason
        else:
            changing.append(node)
    if outcome.left:
        return outcome
    for node in changing:
        outcome.rewritten.append(describe(node))
        if node.op_type == "GridSample" and version < 20 <= now:
            mode = attribute(node, "mode", "linear")
            node.attributes["mode"] = ir.AttrString("mode", OLD_MODES.get(mode, mode))
    model.opset_imports[""] = version
    return outcome


def _hindrance(node: ir.Node, version: int) -> str:
    """Why a node cannot be stated in the lower set; empty when it can."""
    try:
        schema = onnx.defs.get_schema(node.op_type, version)
    except onnx.defs.SchemaError:
        return f"there is none in operator set {version}"
    if node.op_type in CHANGED:
        return f"it means something else in operator set {version}"
    if unknown := [name for name in node.attributes if name not in schema.attributes]:
        return f"operator set {version} does not know {', '.join(unknown)}"
    if node.op_type == "GridSample" and version < 20:
        shape = known_shape(node.inputs[0]) if node.inputs[0] is not None else None
        if shape is None or len(shape) != 4:
            return f"it samples no pictures [N, C, H, W], which operator set {version} is limited to"
    for value, formal in zip(node.inputs, schema.inputs, strict=False):
        dtype = value.dtype if value is not None else None
        if dtype is not None and f"tensor({_NAMES.get(dtype, dtype.name.lower())})" not in formal.types:
            return f"operator set {version} does not take {dtype.name.lower()}"
    return ""


_NAMES = {ir.DataType.FLOAT: "float", ir.DataType.DOUBLE: "double"}
