"""Stage 7: one key frame from appearance features and keypoints."""

from __future__ import annotations

import numpy as np

from ..runtime.session import Model
from ..values import F32, U8, Appearance


def generate(appearance: Appearance, keypoints: F32, model: Model) -> F32:
    """Render one frame.

    Args:
        keypoints: [K, 3] driving keypoints.
        model: takes the appearance features by their roles, `kp_source` and `kp_driving` [1, K, 3], and
            gives `image` [1, 3, S, S], RGB 0..1.

    Returns:
        [3, S, S] float32, unchecked.
    """
    outputs = model.run(
        {
            **appearance.features,
            "kp_source": appearance.source.keypoints[None],
            "kp_driving": keypoints[None],
        }
    )
    return np.asarray(outputs["image"][0], np.float32)


def to_pixels(image: F32) -> U8:
    """[3, S, S] float 0..1 -> [S, S, 3] uint8, rounded, clipped."""
    return np.ascontiguousarray((np.clip(image, 0, 1) * 255 + 0.5).astype(np.uint8).transpose(1, 2, 0))
