"""A constant added to a convolution becomes part of its bias."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from ..model import constant, describe
from ..shapes import known_shape
from .editing import Editor
from .passes import Outcome, Pass


def apply(model: ir.Model) -> Outcome:
    """Fold `Add(Conv(x, w, b), c)` into `Conv(x, w, b + c)` where c is one number, or one a channel."""
    outcome = Outcome()
    for node in list(model.graph):
        if node.op_type != "Add" or node.domain:
            continue
        for value, other in (node.inputs, reversed(node.inputs)):
            conv, added = value.producer() if value is not None else None, constant(other)
            if conv is None or conv.op_type != "Conv" or conv.domain or added is None:
                continue
            why = _fold(model, node, conv, added)
            if why:
                outcome.left[describe(node)] = why
            else:
                outcome.rewritten.append(describe(node))
            break
    return outcome


def _fold(model: ir.Model, add: ir.Node, conv: ir.Node, added: np.ndarray) -> str:
    """Rewrite, or say why not."""
    (made,) = conv.outputs
    shape, weight = known_shape(made), constant(conv.inputs[1])
    bias = constant(conv.inputs[2]) if len(conv.inputs) > 2 and conv.inputs[2] is not None else None
    if shape is None or weight is None or (bias is None and len(conv.inputs) > 2 and conv.inputs[2] is not None):
        return "the convolution's weights are not constant"
    if len(made.uses()) > 1 or made.is_graph_output():
        return "the convolution's result is used without the constant, too"
    channels = shape[1]
    if added.ndim > len(shape) or added.size not in (1, channels):
        return "the constant varies along other axes than the channels"
    if added.size > 1 and (added.ndim < len(shape) - 1 or added.shape[len(added.shape) - len(shape) + 1] != channels):
        return "the constant varies along other axes than the channels"
    total = np.broadcast_to(added.reshape(-1), [channels]) + (0 if bias is None else bias)
    editor = Editor(model, before=conv)
    inputs = [*conv.inputs[:2], editor.const(total.astype(weight.dtype))]
    folded = editor.op("Conv", *inputs, **{a.name: a.value for a in conv.attributes.values()})
    editor.replace([folded], add)
    model.graph.remove(conv, safe=True)
    return ""


PASS = Pass("fold-bias", "a constant added to a convolution becomes part of its bias", apply)
