"""A half-precision graph's numbers on a machine that cannot compute in that precision."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from ..lower.editing import Editor
from ..shapes import infer_node
from .mixed import DTYPES


def emulated(model: ir.Model) -> ir.Model:
    """A copy that computes in float32 and rounds every value that the graph holds in half precision.

    That is what matrix units do, which multiply halves and sum in float32; kernels that also sum in half precision
    are less exact than this. Its weights are the rounded ones, widened.

    Args:
        model: as `convert` makes it; not changed.
    """
    model = model.clone()
    halves = set(DTYPES.values())
    for value in model.graph.initializers.values():
        if value.dtype in halves and value.const_value is not None:
            wide = value.const_value.numpy().astype(np.float32)
            value.const_value = ir.tensor(wide, name=value.name)
            value.dtype = ir.DataType.FLOAT
    order = list(model.graph)
    for node, following in zip(order, [*order[1:], order[-1]], strict=True):
        rounded = {value: value.dtype for value in node.outputs if value.dtype in halves}
        if node.op_type == "Cast" and rounded:
            node.attributes["to"] = ir.AttrInt64("to", ir.DataType.FLOAT.value)
        infer_node(node, dict(model.opset_imports))
        for value, dtype in rounded.items():  # never of the last node: outputs are float32
            uses = list(value.uses())
            editor = Editor(model, before=following)
            widened = editor.op("Cast", editor.op("Cast", value, to=dtype.value), to=ir.DataType.FLOAT.value)
            for use in uses:
                use.node.replace_input_with(use.idx, widened)
    return model
