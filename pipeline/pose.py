"""Head pose: degrees, bins and rotation matrices (LivePortrait)."""

from __future__ import annotations

import numpy as np

from .packs.specs import PoseBins
from .values import F32


def degrees_from_bins(logits: F32, bins: PoseBins) -> F32:
    """Expected angle of a distribution over bins: [..., B] logits -> [...] degrees."""
    weights = np.exp(logits - logits.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    expected = (weights * np.arange(logits.shape[-1], dtype=np.float32)).sum(-1)
    return np.asarray(bins.step * expected + bins.offset, np.float32)


def rotation_matrix(angles: F32) -> F32:
    """(Rz Ry Rx) transposed, for row vectors.

    Args:
        angles: [3] degrees: pitch, yaw, roll.

    Returns:
        [3, 3] float32 R, so that `points @ R` turns the points.
    """
    (cx, cy, cz), (sx, sy, sz) = np.cos(np.radians(angles)), np.sin(np.radians(angles))
    x = np.array([[1, 0, 0], [0, cx, -sx], [0, sx, cx]])
    y = np.array([[cy, 0, sy], [0, 1, 0], [-sy, 0, cy]])
    z = np.array([[cz, -sz, 0], [sz, cz, 0], [0, 0, 1]])
    return np.ascontiguousarray((z @ y @ x).T, np.float32)
