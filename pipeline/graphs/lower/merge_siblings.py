"""Convolutions of the same input become one convolution with more outputs.

A wide convolution fills a GPU where several narrow ones, one after another, do not.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from ..model import constant, describe, static_shape
from .editing import Editor
from .passes import Outcome, Pass

UNARY = {"Elu", "LeakyRelu", "Relu", "Sigmoid", "Tanh"}
"""Activations that are merged together with their convolutions."""


def apply(model: ir.Model) -> Outcome:
    """Merge convolutions that read the same value through the same window; a Split takes the results apart."""
    outcome = Outcome()
    families: dict[object, list[ir.Node]] = {}
    for node in model.graph:
        if node.op_type != "Conv" or node.domain:
            continue
        if node.attributes.get("group") and node.attributes["group"].as_int() != 1:
            outcome.left[describe(node)] = "its channels are in groups"
        elif any(constant(value) is None for value in node.inputs[1:]):
            outcome.left[describe(node)] = "its weights are not constant, or it has no bias to go with the others'"
        else:
            weight = constant(node.inputs[1])
            assert weight is not None
            key = (node.inputs[0], weight.shape[1:], len(node.inputs), _settings(node))
            families.setdefault(key, []).append(node)
    for family in families.values():
        if len(family) > 1:
            outcome.rewritten += [describe(node) for node in family]
            _merge(model, family)
    return outcome


def _settings(node: ir.Node) -> tuple[object, ...]:
    return tuple(sorted((a.name, str(a.value)) for a in node.attributes.values()))


def _merge(model: ir.Model, family: Sequence[ir.Node]) -> None:
    first = family[0]
    editor = Editor(model, before=first)
    operands = [
        editor.const(np.concatenate([constant(node.inputs[position]) for node in family]))
        for position in range(1, len(first.inputs))
    ]
    merged = editor.op("Conv", first.inputs[0], *operands, **_attributes(first))
    sizes = [static_shape(node.outputs[0])[1] for node in family]
    replaced: Sequence[ir.Node] = family
    activations = [_activation(node) for node in family]
    head = activations[0]
    if head is not None and all(
        node is not None and (node.op_type, _settings(node)) == (head.op_type, _settings(head)) for node in activations
    ):
        merged = editor.op(head.op_type, merged, **_attributes(head))
        replaced = [node for node in activations if node is not None]
    parts = editor.ops("Split", len(family), merged, editor.const(sizes), axis=1)
    for node, part in zip(replaced, parts, strict=True):
        editor.replace([part], node)
    if replaced is not family:
        for node in family:
            model.graph.remove(node, safe=True)


def _activation(node: ir.Node) -> ir.Node | None:
    """The activation that alone reads a convolution's result."""
    (value,) = node.outputs
    uses = list(value.uses())
    if len(uses) != 1 or value.is_graph_output() or uses[0].node.domain or uses[0].node.op_type not in UNARY:
        return None
    return uses[0].node


def _attributes(node: ir.Node) -> dict[str, Any]:
    return {a.name: list(a.value) if isinstance(a.value, tuple) else a.value for a in node.attributes.values()}


PASS = Pass("merge-siblings", "convolutions of the same input become one", apply)
