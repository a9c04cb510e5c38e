"""Linear layers of a graph, and writing them with weights of few bits."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from ..lower.editing import Editor
from ..model import attribute, constant, describe
from .blocks import Blocks

DOMAIN = "com.microsoft"

PLAIN = {"alpha": 1.0, "beta": 1.0, "transA": 0}
"""Attributes of a Gemm that is a linear layer."""


@dataclass(frozen=True)
class Linear:
    """A product with a constant matrix."""

    node: ir.Node
    weight: np.ndarray
    """[K, N] float32."""
    bias: ir.Value | None


def linears(model: ir.Model, left: dict[str, str]) -> list[Linear]:
    """The linear layers of a prepared graph, in order; other products go to `left` with the reason."""
    found = []
    for node in model.graph:
        if node.domain or node.op_type not in ("MatMul", "Gemm"):
            continue
        weight = constant(node.inputs[1])
        if weight is None:
            left[describe(node)] = "its second operand is no constant"
        elif weight.ndim != 2 or weight.dtype != np.float32:
            left[describe(node)] = f"its weights are {weight.dtype} of rank {weight.ndim} instead of a float32 matrix"
        elif node.op_type == "MatMul":
            found.append(Linear(node, weight, None))
        elif any(
            attribute(node, name, usual) != usual for name, usual in (("alpha", 1.0), ("beta", 1.0), ("transA", 0))
        ):
            left[describe(node)] = "it scales its operands, or turns the first"
        else:
            turned = weight.T if attribute(node, "transB", 0) else weight
            found.append(Linear(node, turned, node.inputs[2] if len(node.inputs) > 2 else None))
    return found


def write(model: ir.Model, layer: Linear, blocks: Blocks, bits: int, size: int) -> None:
    """Replace a layer by MatMulNBits of ONNX Runtime, in place."""
    node = layer.node
    editor = Editor(model, before=node)
    length, outputs = layer.weight.shape
    model.opset_imports.setdefault(DOMAIN, 1)
    arrays = blocks.packed, blocks.scales, blocks.zeros
    made = ir.node(
        "MatMulNBits",
        [node.inputs[0], *(editor.const(array) for array in arrays)],
        attributes={"K": length, "N": outputs, "bits": bits, "block_size": size},
        domain=DOMAIN,
    )
    (old,), (new,) = node.outputs, made.outputs
    made.name = new.name = f"{old.name}_{bits}bits"
    new.type, new.shape = old.type, old.shape
    model.graph.insert_before(node, made)
    editor.replace([new if layer.bias is None else editor.op("Add", new, layer.bias)])
