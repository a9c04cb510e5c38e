"""Which Resize nodes repeat every pixel a whole number of times, proven from their arithmetic."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from ..model import attribute, constant
from ..shapes import known_shape


def repeats(node: ir.Node | None) -> tuple[int, int] | None:
    """(sH, sW) of a Resize of pictures with out[n, c, y, x] = in[n, c, y // sH, x // sW]; None for anything else."""
    if node is None or node.op_type != "Resize" or node.domain or node.inputs[0] is None:
        return None
    shape, out_shape = known_shape(node.inputs[0]), known_shape(node.outputs[0])
    if shape is None or out_shape is None or len(shape) != 4 or 0 in shape:
        return None
    factors = [new // old for new, old in zip(out_shape, shape, strict=True)]
    if [old * factor for old, factor in zip(shape, factors, strict=True)] != list(out_shape) or factors[:2] != [1, 1]:
        return None
    if not _as_sized(node, factors):
        return None
    mode = str(attribute(node, "coordinate_transformation_mode", "half_pixel"))
    if mode == "tf_crop_and_resize":
        return None
    if max(factors) > 1:
        if attribute(node, "mode", "nearest") != "nearest":
            return None
        rounding = str(attribute(node, "nearest_mode", "round_prefer_floor"))
        for length, factor in zip(shape[2:], factors[2:], strict=True):
            if not np.array_equal(_sources(mode, rounding, length, factor), np.arange(length * factor) // factor):
                return None
    return factors[2], factors[3]


def _as_sized(node: ir.Node, factors: list[int]) -> bool:
    """Whether the scales used are exactly the factors: given as such, or sizes with no policy that changes them."""
    scales = constant(node.inputs[2]) if len(node.inputs) > 2 else None
    if scales is None or not scales.size:
        return attribute(node, "keep_aspect_ratio_policy", "stretch") == "stretch"
    axes = [int(axis) % 4 for axis in attribute(node, "axes", range(4))]
    return [factors[axis] for axis in axes] == scales.tolist()


def _sources(mode: str, rounding: str, length: int, factor: int) -> np.ndarray:
    """The source index of every output, by the formulas of the Resize operator; out of range is clamped."""
    out = np.arange(length * factor, dtype=np.float64)
    total = length * factor
    if mode in ("half_pixel", "half_pixel_symmetric") or (mode == "pytorch_half_pixel" and total > 1):
        x = (out + 0.5) / factor - 0.5
    elif mode == "align_corners":
        x = out * (length - 1) / max(total - 1, 1)
    elif mode == "asymmetric":
        x = out / factor
    else:
        return np.full(total, -1)
    if rounding == "floor":
        x = np.floor(x)
    elif rounding == "ceil":
        x = np.ceil(x)
    elif rounding == "round_prefer_floor":
        x = np.ceil(x - 0.5)
    else:
        x = np.floor(x + 0.5)
    return np.clip(x, 0, length - 1)
