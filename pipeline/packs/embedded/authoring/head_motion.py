"""The head's part of the motion: an affine map of the rigid points, depth and reach of every node."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from .anatomy import FACE_OUTLINE, MESH_POINTS, RIGID, indicator
from .fields import inverse_transpose, moving_least_squares
from .windows import COARSE_STEP, SIZE
from .writer import Graph, Value

DEPTH_SOFTENING = 16.0
"""Of the depth field, pixels: where the face turns away from the viewer, its depth rises by less than 4 pixels a
pixel, and a turn by 15 degrees folds nothing."""

BORDER_HOLDS = 90
"""Pixels from the crop's border over which the head's motion rises: when the head rolls, hair must not fold there."""

DEPTH_RINGS = [(1.15, 1, 0.9, 0.1), (1.4, 0.95, 0.6, 0.25), (1.75, 0.62, 0.3, 0.35), (2.3, 0.2, 0.05, 0.4),
               (3.2, 0, 0, 0.4)]  # fmt: skip
"""Copies of the face outline: size, head weight above and below, depth behind it in half widths * 0.6."""

RIGID_HAIR = [1, 1, 0.85, 0.4, 0]
"""The same weights above where the person stands apart from the background: hair and hats turn with the head, and the
background need not bend."""


class HeadMotion:
    """Affine motion of the rigid points, carried to any point with a depth."""

    def __init__(self, g: Graph, points: Value) -> None:
        self.g = g
        rigid = indicator(RIGID)
        self.mean = points.take(RIGID).mean(0)
        centred = (points - self.mean) * rigid[:, None]
        covariance = centred.transpose(1, 0) @ centred + np.eye(3, dtype=np.float32)
        slopes = inverse_transpose(covariance) @ centred.transpose(1, 0)
        self.keypoints = g.concat([slopes, (rigid / len(RIGID))[None]], axis=0)
        """[4, 478] x, y, z slopes and constant of the affine map, from keypoint displacements."""

    def at(self, positions: Value, depth: Value) -> Value:
        """[n, 4] what to multiply `keypoints` with, for positions [n, 2] at depth [n, 1]."""
        here = self.g.concat([positions - self.mean[0:2], depth - self.mean[2]], axis=1)
        return self.g.concat([here, depth * 0 + 1], axis=1)


class Outline:
    """The face outline, and how low each of its points lies."""

    def __init__(self, points: Value) -> None:
        self.points = points.take(FACE_OUTLINE)
        self.centre = self.points.mean(0)
        self.half = (self.points.max(0) - self.points.min(0)) * 0.5
        below = self.points[:, 1:2] - self.centre[1]
        self.lowness = (below / below.max(0)).clip(0, 1)
        """[36, 1] 0 at the middle of the face and above, 1 at the chin."""

    def ring(self, size: float) -> Value:
        """[36, 2] the outline, scaled about its centre."""
        return self.centre[0:2] + (self.points[:, 0:2] - self.centre[0:2]) * size


def border_share(positions: npt.NDArray[np.float32], over: float) -> npt.NDArray[np.float32]:
    """[n, 1] part of a motion that is left at positions [n, 2]: 0 at the crop's border, 1 from `over` pixels on."""
    from_border = np.minimum(positions, SIZE - 1 - positions).min(1, keepdims=True) - COARSE_STEP / 2
    return np.clip(from_border / over, 0, 1).astype(np.float32)


def depth_and_head_weight(
    g: Graph, points: Value, outline: Outline, targets: npt.NDArray[np.float32], apart: Value
) -> tuple[Value, Value]:
    """Depth [n, 1] (pixels) and part of the head's motion [n, 1] (1 on the face, 0 at the border) at targets [n, 2].

    `apart` []: 1 where the person stands apart from the background.
    """
    edge = np.linspace(0, SIZE - 1, 9).round().astype(np.float32)
    border = np.array([(x, y) for x in edge for y in edge if min(x, y) == 0 or max(x, y) == SIZE - 1])
    positions, depths, parts = [points[:MESH_POINTS, 0:2]], [points[:MESH_POINTS, 2:3]], []
    parts.append(g.constant(np.ones((MESH_POINTS, 1), np.float32)))
    for (size, with_all, below, behind), alone in zip(DEPTH_RINGS, RIGID_HAIR, strict=True):
        above = apart * (alone - with_all) + with_all
        positions.append(outline.ring(size))
        depths.append(outline.points[:, 2:3] + outline.half[0] * (behind * 0.6))
        parts.append(outline.lowness * (below - above) + above)
    positions.append(g.constant(border))
    depths.append((outline.centre[2] + outline.half[0]).reshape(1, 1).expand(len(border), 1))
    parts.append(g.constant(np.zeros((len(border), 1), np.float32)))
    values = g.concat([g.concat(depths, axis=0), g.concat(parts, axis=0)], axis=1)
    count = MESH_POINTS + len(DEPTH_RINGS) * len(FACE_OUTLINE) + len(border)
    everywhere = g.constant(np.ones(count, np.float32))
    field = moving_least_squares(g, g.constant(targets), len(targets), g.concat(positions, axis=0), [values],
                                 [everywhere], DEPTH_SOFTENING, ridge=1.0)[0]  # fmt: skip
    return field[:, 0:1], field[:, 1:2].clip(0, 1) * border_share(targets, BORDER_HOLDS)
