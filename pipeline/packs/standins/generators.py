"""Generators as published: their true structure, as exported or with the GridSamples lowered and weights halved."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import onnx_ir as ir
from onnx import ModelProto, helper, numpy_helper

from ...graphs.convert import convert
from ...graphs.lower.presets import lower
from ...graphs.standins import Spec, appearance, generator, warping_part
from ...graphs.standins.weights import WeightSource


def appearance_extractor(spec: Spec, weights: WeightSource) -> ModelProto:
    """`img` [1, 3, 256, 256] to `output` [1, 32, 16, 64, 64]."""
    model = appearance(spec, weights)
    (output,) = model.graph.output
    for node in model.graph.node:
        node.output[:] = ["output" if name == output.name else name for name in node.output]
    output.name = "output"
    return model


def warping_network(spec: Spec, weights: WeightSource) -> ModelProto:
    """The warping half in a file of its own: there the identity grid is stored once and repeated as the graph runs."""
    model = warping_part(spec, weights)
    graph = model.graph
    one, many = ([1, points, *spec.volume, 3] for points in (1, spec.keypoints))
    grid = next(tensor for tensor in graph.initializer if list(tensor.dims) == one)
    repeated = next(tensor for tensor in graph.initializer if list(tensor.dims) == many)
    graph.initializer.remove(repeated)
    graph.initializer.append(numpy_helper.from_array(np.array(many, np.int64), "grids"))
    graph.node.insert(0, helper.make_node("Expand", [grid.name, "grids"], [repeated.name], name=repeated.name))
    return model


def web_generator(spec: Spec, weights: WeightSource, *, preview: bool = False) -> ModelProto:
    """As the published pack has it: no GridSample of a volume, convolutions of volumes kept, mixed FP16."""
    model = ir.from_proto(generator(replace(spec, preview=preview), weights))
    converted, _ = convert(lower(model, "gridsample").model, "float16")
    return ir.to_proto(converted)
