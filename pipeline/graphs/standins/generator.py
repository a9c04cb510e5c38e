"""A stand-in of the LivePortrait generator: the published structure with seeded weights."""

from __future__ import annotations

from onnx import ModelProto

from .spade import spade
from .spec import Spec
from .warping import warping
from .weights import SeededWeights, WeightSource
from .writer import GraphWriter

WARPED = "warped"


def generator(spec: Spec, weights: WeightSource = SeededWeights()) -> ModelProto:  # noqa: B008 - immutable
    """Warping and SPADE in one graph: 277 nodes, or 276 for a preview; opset 20.

    Inputs `feature_3d` [1, C, D, H, W], `kp_driving` and `kp_source` [1, K, 3]; output `out`
    [1, 3, image_size, image_size] in 0..1.
    """
    writer = GraphWriter(weights, auto_pad=True)
    spade(writer, spec, warping(writer, spec, "feature_3d", "kp_driving", "kp_source", WARPED), "out")
    return writer.model("generator", _inputs(spec), _image(spec))


def warping_part(spec: Spec, weights: WeightSource = SeededWeights()) -> ModelProto:  # noqa: B008
    """The warping half alone: the generator's inputs; output `warped` [1, warped_channels, H, W]."""
    writer = GraphWriter(weights, auto_pad=True)
    warping(writer, spec, "feature_3d", "kp_driving", "kp_source", WARPED)
    return writer.model("warping", _inputs(spec), _warped(spec))


def spade_part(spec: Spec, weights: WeightSource = SeededWeights()) -> ModelProto:  # noqa: B008
    """The SPADE half alone: input `warped`; the generator's output. The same weights as in the whole."""
    writer = GraphWriter(weights, auto_pad=True)
    spade(writer, spec, WARPED, "out")
    return writer.model("spade", _warped(spec), _image(spec))


def _inputs(spec: Spec) -> dict[str, tuple[int, ...]]:
    points = (1, spec.keypoints, 3)
    return {"feature_3d": (1, spec.feature_channels, *spec.volume), "kp_driving": points, "kp_source": points}


def _warped(spec: Spec) -> dict[str, tuple[int, ...]]:
    return {WARPED: (1, spec.warped_channels, spec.size, spec.size)}


def _image(spec: Spec) -> dict[str, tuple[int, ...]]:
    return {"out": (1, 3, spec.image_size, spec.image_size)}
