"""Writing QuantizeLinear and DequantizeLinear around convolutions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import chain

import numpy as np
import onnx_ir as ir

from ..lower.conv2d import conv2d
from ..lower.editing import Editor
from ..model import clean
from .ranges import Scale
from .weights import quantise_weight


def result_of(conv: ir.Node) -> ir.Value:
    """The value that stands for a convolution's result: after its Relu, where only that reads it.

    A Relu before the quantisation costs nothing: it is the end of the range.
    """
    (made,) = conv.outputs
    uses = list(made.uses())
    if len(uses) == 1 and not made.is_graph_output() and uses[0].node.op_type == "Relu" and not uses[0].node.domain:
        return uses[0].node.outputs[0]
    return made


def boundary(convs: Iterable[ir.Node]) -> list[ir.Value]:
    """The values whose ranges are needed to quantise convolutions: what goes in and what comes out; each once."""
    values = chain.from_iterable((node.inputs[0], result_of(node)) for node in convs)
    return list(dict.fromkeys(value for value in values if value is not None))


def insert(model: ir.Model, convs: Iterable[ir.Node], scales: Mapping[str, Scale], bits: int) -> None:
    """Quantise convolutions of a prepared model, in place.

    Args:
        scales: of every value of `boundary`, by name.
        bits: of the weights.
    """
    chosen = list(convs)
    results = list(dict.fromkeys(result_of(node) for node in chosen))
    inputs = [value for value in dict.fromkeys(node.inputs[0] for node in chosen) if value is not None]
    for node in chosen:
        _operands(model, node, scales[str(node.inputs[0].name)].scale, bits)  # type: ignore[union-attr]
    for value in results:
        _round_trip(model, value, scales[str(value.name)], None)
    for value in inputs:
        if value not in results:
            _round_trip(model, value, scales[str(value.name)], chosen)
    clean(model)


def _operands(model: ir.Model, node: ir.Node, input_scale: np.float32, bits: int) -> None:
    """Integers in the place of weights and bias."""
    conv = conv2d(node)
    editor = Editor(model, before=node)
    integers, scales = quantise_weight(conv.weight, bits)
    zero = editor.const(np.zeros(len(scales), np.int8))
    weight = editor.op("DequantizeLinear", editor.const(integers), editor.const(scales), zero, axis=0)
    node.replace_input_with(1, weight)
    if conv.bias is None:
        return
    scale = input_scale * scales
    limits = np.iinfo(np.int32)
    whole = np.clip(np.round(conv.bias.astype(np.float64) / scale), limits.min, limits.max).astype(np.int32)
    node.replace_input_with(2, editor.op("DequantizeLinear", editor.const(whole), editor.const(scale), axis=0))


def _round_trip(model: ir.Model, value: ir.Value, scale: Scale, users: list[ir.Node] | None) -> None:
    """Quantise a value and back, for these users or for all."""
    uses = [use for use in value.uses() if users is None or (use.node in users and use.idx == 0)]
    maker = value.producer()
    follower = next(iter(model.graph)) if maker is None else _next(model.graph, maker)
    editor = Editor(model, before=follower)
    parameters = editor.const(np.asarray(scale.scale)), editor.const(np.asarray(scale.zero))
    back = editor.op("DequantizeLinear", editor.op("QuantizeLinear", value, *parameters), *parameters)
    for use in uses:
        use.node.replace_input_with(use.idx, back)
    if users is None and value.is_graph_output():
        for index, output in enumerate(model.graph.outputs):
            if output is value:
                model.graph.outputs[index] = back
        back.name, value.name = value.name, f"{value.name}_float"


def _next(graph: ir.Graph, node: ir.Node) -> ir.Node:
    following = iter(graph)
    for other in following:
        if other is node:
            break
    found = next(following, None)
    if found is None:  # something to stand in front of; it has no use and goes with the next cleaning
        found = ir.node("Identity", [node.outputs[0]])
        graph.append(found)
    return found
