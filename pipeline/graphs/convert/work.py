"""Which nodes do the work of a graph."""

from __future__ import annotations

import math

import onnx_ir as ir

from ..shapes import known_shape

LIGHT_SHARE = 0.01
"""Share of a graph's multiply-adds that the light products make together."""


def multiply_adds(node: ir.Node) -> int:
    """Multiply-adds of a product (convolution or matrix product); 0 for other nodes and unknown shapes."""
    if node.domain or node.op_type not in ("Conv", "ConvTranspose", "Gemm", "MatMul"):
        return 0
    first, second = node.inputs[:2]
    if first is None or second is None:
        return 0
    given, other, made = known_shape(first), known_shape(second), known_shape(node.outputs[0])
    if given is None or other is None or made is None:
        return 0
    match node.op_type:
        case "Conv":
            return math.prod(made) * math.prod(other[1:])
        case "ConvTranspose":
            return math.prod(given) * math.prod(other[1:])
        case "Gemm":
            transposed = node.attributes.get("transA")
            return math.prod(made) * given[0 if transposed and transposed.as_int() else 1]
    return math.prod(made) * given[-1]


def heavy_nodes(graph: ir.Graph, light_share: float = LIGHT_SHARE) -> set[ir.Node]:
    """The products that are worth half precision: all but the smallest, which together do `light_share` of the work.

    Large products add up in float32 on every tensor core, so rounding their operands costs one rounding error, not
    one a term. A graph has such products at many sizes; a share of the whole needs no threshold that fits one
    network only.
    """
    work = sorted(((multiply_adds(node), position, node) for position, node in enumerate(graph)), reverse=True)
    total = sum(count for count, _, _ in work)
    heavy: set[ir.Node] = set()
    done = 0
    for count, _, node in work:
        if not count or done >= (1 - light_share) * total:
            break
        heavy.add(node)
        done += count
    return heavy
