"""Stage 7: key frames from appearance features and keypoints."""

from __future__ import annotations

import numpy as np

from ..packs.manifest import ModelSpec
from ..runtime.binding import Fixed
from ..runtime.session import Model
from ..values import F32, U8, Appearance


def fixed_inputs(appearance: Appearance, spec: ModelSpec) -> Fixed:
    """What the generator takes beside the driving keypoints: the same for all key frames of a portrait.

    Args:
        spec: the generator's tensors. One whose leading side is the batch gets as many copies; features may be
            stored in a smaller type than the generator takes: they are converted here, once.
    """
    given = {**appearance.features, "kp_source": appearance.source.keypoints[None]}
    arrays = {
        role: array.astype(spec.inputs[role].dtype, copy=False) for role, array in given.items() if role in spec.inputs
    }
    return Fixed(
        appearance,
        {
            role: np.repeat(array, spec.inputs[role].shape[0] or 1, 0) if len(array) == 1 else array
            for role, array in arrays.items()
        },
    )


def batch_size(spec: ModelSpec) -> int:
    """Key frames that one run of a generator makes: the leading side of its driving keypoints; a free one is 1."""
    return spec.inputs["kp_driving"].shape[0] or 1


def generate(fixed: Fixed, keypoints: F32, model: Model) -> F32:
    """Render the frames of one batch.

    Args:
        fixed: of the portrait. keypoints: [B, K, 3] driving keypoints, as many as the model takes.
        model: takes the appearance features by their roles, `kp_source` and `kp_driving` [B, K, 3], and gives
            `image` [B, 3, S, S], RGB 0..1.

    Returns:
        [B, 3, S, S] float32, unchecked.
    """
    return np.asarray(model.run({"kp_driving": keypoints}, fixed)["image"], np.float32)


def to_pixels(image: F32) -> U8:
    """[3, S, S] float 0..1 -> [S, S, 3] uint8, rounded, clipped."""
    pixels = np.empty((*image.shape[1:], 3), np.uint8)
    for channel, plane in enumerate(image):  # one at a time stays near the processor: a third of the time
        level = np.clip(plane, 0, 1)
        level *= 255
        level += 0.5
        pixels[:, :, channel] = level
    return pixels
