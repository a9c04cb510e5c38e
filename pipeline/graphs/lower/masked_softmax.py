"""Softmax whose mask leaves one place a row is a constant, whatever the scores; attention with it is a selection.

The denoiser's cross-attention has such a mask (each frame sees its own sound alone), so that it does not depend on
the queries and can be hoisted out of the loop.
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from ..model import attribute, constant, describe
from ..shapes import known_shape
from .editing import Editor
from .passes import Outcome, Pass


def apply(model: ir.Model) -> Outcome:
    """See `PASS`."""
    outcome = Outcome()
    for node in list(model.graph):
        if node.op_type != "Softmax" or node.domain:
            continue
        chosen = _one_hot(node)
        if isinstance(chosen, str):
            outcome.left[describe(node)] = chosen
            continue
        outcome.rewritten.append(describe(node))
        followers = [use.node for use in node.outputs[0].uses()]
        editor = Editor(model, before=node)
        editor.replace([editor.const(chosen)])
        for follower in followers:
            _identity_product(model, follower)
    return outcome


def _one_hot(node: ir.Node) -> np.ndarray | str:
    """The constant that the softmax is, or why it is none."""
    shape = known_shape(node.outputs[0])
    axis = attribute(node, "axis", -1)
    if shape is None or axis not in (-1, len(shape) - 1):
        return "not over the last axis"
    if node.outputs[0].is_graph_output():
        return "an output of the graph"
    made = None if node.inputs[0] is None else node.inputs[0].producer()
    if made is None or made.op_type not in ("Add", "Where"):
        return "no mask is added"
    if made.op_type == "Add":
        masks = [found for value in made.inputs if (found := constant(value)) is not None]
        hidden = None if not masks else np.isneginf(masks[0])
    else:
        hidden = _hidden_by_where(made)
    if hidden is None:
        return "the mask is not constant"
    hidden = np.broadcast_to(hidden, shape)
    if not ((~hidden).sum(-1) == 1).all():
        return "the mask leaves more or fewer than one place a row"
    dtype = np.float32 if node.outputs[0].dtype is None else node.outputs[0].dtype.numpy()
    return np.ascontiguousarray((~hidden).astype(dtype))


def _hidden_by_where(node: ir.Node) -> np.ndarray | None:
    condition, kept, other = (constant(value) for value in node.inputs)
    if condition is None:
        return None
    if kept is not None and np.isneginf(kept).all():
        return condition
    return ~condition if other is not None and np.isneginf(other).all() else None


def _identity_product(model: ir.Model, node: ir.Node) -> None:
    """Replace MatMul(identity, x) by x where their batches agree."""
    if node.op_type != "MatMul" or node.domain or node.inputs[0] is None or node.inputs[1] is None:
        return
    left, right = constant(node.inputs[0]), node.inputs[1]
    if left is None or known_shape(right) != known_shape(node.outputs[0]) or left.shape[-1] != left.shape[-2]:
        return
    if (left == np.eye(left.shape[-1], dtype=left.dtype)).all():
        Editor(model, before=node).replace([right])


PASS = Pass("masked-softmax", "softmax with one place a row left by its mask becomes a constant", apply)
