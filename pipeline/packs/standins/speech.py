"""The speech encoder and the denoiser: the published structure, and motion that goes on from what was before."""

from __future__ import annotations

import numpy as np
from onnx import ModelProto, helper, numpy_helper

from ...graphs.standins import transformer
from ...graphs.standins.transformer import FRAMES, PREVIOUS, TransformerSpec
from ...graphs.standins.weights import WeightSource

NEW = 0.2
"""What a frame of motion takes of the network's own frame; the rest comes from the frame before it."""

PREDICTION = "motion_prediction"


def speech_encoder(spec: TransformerSpec, weights: WeightSource) -> ModelProto:
    """`audio_padded` [1, 64080] to `audio_features` [1, 100, 256]."""
    return transformer.speech_encoder(spec, weights)


def denoiser(spec: TransformerSpec, weights: WeightSource) -> ModelProto:
    """The transformer's denoiser with a moving average over time behind it that begins with `previous_motion`.

    A trained network goes on from the motion before the window; random weights would not. So row i of the output is
    (1 - NEW) of row i - 1 and NEW of what the transformer made, and the first rows are `previous_motion` itself.
    """
    model = transformer.denoiser(spec, weights)
    graph = model.graph
    last = next(node for node in graph.node if PREDICTION in node.output)
    last.name = last.output[0] = "own"
    graph.initializer.extend(
        [
            numpy_helper.from_array(_average(), "average"),
            numpy_helper.from_array(np.array([PREVIOUS], np.int64), "first"),
            numpy_helper.from_array(np.array([PREVIOUS + FRAMES], np.int64), "end"),
            numpy_helper.from_array(np.array([1], np.int64), "rows"),
        ]
    )
    graph.node.extend(
        [
            helper.make_node("Slice", ["own", "first", "end", "rows"], ["window"], name="window"),
            helper.make_node("Concat", ["previous_motion", "window"], ["joined"], name="joined", axis=1),
            helper.make_node("MatMul", ["average", "joined"], [PREDICTION], name=PREDICTION),
        ]
    )
    return model


def _average() -> np.ndarray:
    """[110, 110]: the moving average as a matrix over rows."""
    size = PREVIOUS + FRAMES
    matrix = np.eye(size)
    for row in range(PREVIOUS, size):
        matrix[row] = (1 - NEW) * matrix[row - 1]
        matrix[row, row] = NEW
    return matrix.astype(np.float32)
