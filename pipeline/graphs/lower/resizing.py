"""3-D Resize as a 2-D one of slices, then one of depth: all modes are separable."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from ..model import attribute, constant, static_shape
from .packing import Packed
from .passes import CannotLowerError
from .rank import Rule, Walk, rank_pass
from .volumes import DEPTH_BATCH, DEPTH_SPATIAL, volume

KEPT = (
    "antialias", "coordinate_transformation_mode", "cubic_coeff_a", "exclude_outside", "extrapolation_value", "mode",
    "nearest_mode",
)  # fmt: skip


def resize(walk: Walk, node: ir.Node) -> Sequence[Packed]:
    """Scales along D, H and W; nearest, linear and cubic."""
    source = volume(walk, node.inputs[0])
    shape = static_shape(node.outputs[0])
    if shape[:2] != source.shape[:2]:
        raise CannotLowerError("it changes the batch or the channels")
    if attribute(node, "coordinate_transformation_mode") == "tf_crop_and_resize":
        raise CannotLowerError("tf_crop_and_resize is not separable here")
    if attribute(node, "keep_aspect_ratio_policy", "stretch") != "stretch":
        raise CannotLowerError("the aspect ratio is kept by a policy")
    scales = _scales(node)
    kept = {name: node.attributes[name].value for name in KEPT if name in node.attributes}
    packed = source
    if _changes(scales, source.shape, shape, (3, 4)):
        slices = walk.packed(source, DEPTH_BATCH)
        value = _step(walk, slices.value, (3, 4), scales, shape, kept)
        packed = Packed(value, (*source.shape[:3], *shape[3:]), DEPTH_BATCH)
    if _changes(scales, source.shape, shape, (2,)):
        column = walk.packed(packed, DEPTH_SPATIAL)
        packed = Packed(_step(walk, column.value, (2,), scales, shape, kept), shape, DEPTH_SPATIAL)
    return [packed]


def _scales(node: ir.Node) -> dict[int, float] | None:
    """Scales by axis where the node gives scales, None where it gives sizes.

    Raises:
        CannotLowerError: neither is constant.
    """
    given = constant(node.inputs[2]) if len(node.inputs) > 2 else None
    sizes = constant(node.inputs[3]) if len(node.inputs) > 3 else None
    axes = [int(axis) % 5 for axis in attribute(node, "axes", range(5))]
    if given is not None and given.size:
        return dict(zip(axes, given.tolist(), strict=True))
    if sizes is None:
        raise CannotLowerError("its scales are not constant")
    return None


def _changes(scales: dict[int, float] | None, old: Sequence[int], new: Sequence[int], axes: Sequence[int]) -> bool:
    if scales is None:
        return any(old[axis] != new[axis] for axis in axes)
    return any(scales.get(axis, 1.0) != 1.0 for axis in axes)


def _step(
    walk: Walk,
    value: ir.Value,
    axes: Sequence[int],
    scales: dict[int, float] | None,
    shape: Sequence[int],
    kept: dict[str, Any],
) -> ir.Value:
    """One resize of the physical axes 2 and 3, or of axis 2 alone."""
    lengths = static_shape(value)
    if scales is not None:
        wanted = [scales.get(axis, 1.0) for axis in axes]
        factors = np.asarray([1.0, 1.0, *wanted, *[1.0] * (2 - len(axes))], np.float32)
        return walk.editor.op("Resize", value, None, walk.editor.const(factors), **kept)
    target = [*lengths[:2], *(shape[axis] for axis in axes), *lengths[2 + len(axes) :]]
    return walk.editor.op("Resize", value, None, None, walk.editor.const(target), **kept)


RULES: dict[str, Rule] = {"Resize": resize}

PASS = rank_pass("resize3d", "3-D resizing as 2-D resizing of slices and of depth", RULES)
