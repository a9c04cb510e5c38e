"""The nodes between which expression is interpolated, and which field follows which of them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from .anatomy import (
    FACE_OUTLINE,
    LOWER_INNER,
    LOWER_LIP_ROWS,
    MESH_POINTS,
    MOUTH_CORNERS,
    NEUTRAL,
    OUTER_MOUTH_CORNERS,
    UPPER_INNER,
    UPPER_LIP_ROWS,
)  # fmt: skip
from .fields import moving_least_squares
from .head_motion import Outline, border_share
from .lid_curves import LID_POINTS
from .motion_basis import OF_LOWER, OF_UPPER, RANK
from .regions import MouthRegion
from .windows import SIZE
from .writer import Graph, Value

SOFTENING = 1.2
"""Of the expression fields, pixels: small, so that they pass through the landmarks."""

FALLOFF_RINGS = [(1.13, 0.72, 0.25), (1.35, 0.32, 0), (1.8, 0, 0), (2.6, 0, 0)]
"""Copies of the face outline that carry a part of its expression: size, part at the chin, part above."""

OUTLINE_BETWEEN = (0.25, 0.5, 0.75)
"""Where between two points of the outline further nodes hold it: cheeks that move would dent it between them."""

LEAST_HELD = 0.05
"""Weight of such a node of the far side, whose points hide behind skin that moves otherwise: still a silhouette."""

FADES_FROM, ENDS_AT = (1.0, 1.2), (1.4, 1.85)
"""Where expression fades out, in half extents of the face outline about its centre: beside and above it, below it."""

BORDER_HOLDS = 36
"""Pixels from the crop's border over which expression rises, so that the border never moves."""


SIDES = (np.abs(NEUTRAL[:MESH_POINTS, 0]) > 0.4).astype(np.float32)
"""[468] 1 where a face that turns away hides its own skin; the rims of nose and lips hide none that moves."""

HIDDEN_SLOPE, HIDDEN_OVER = 3.0, 8.0
"""A point is hidden when another, in front, is nearer to it than its part 1 / HIDDEN_SLOPE of the depth between
them, and does not count at all from so many pixels of depth further on."""


def _flat(rows: list[list[int]]) -> list[int]:
    return [point for row in rows for point in row]


def _above_mouth() -> list[int]:
    """Points of the average head between nose and mouth, which the jaw layer must not follow."""
    half_width = (NEUTRAL[MOUTH_CORNERS[1], 0] - NEUTRAL[MOUTH_CORNERS[0], 0]) / 2
    lowest = min(NEUTRAL[13, 1], NEUTRAL[MOUTH_CORNERS[0], 1]) + 0.02 * half_width
    beside = np.abs(NEUTRAL[:, 0] - NEUTRAL[13, 0]) < 1.15 * half_width
    between = (NEUTRAL[:, 1] > NEUTRAL[4, 1] - 0.15 * half_width) & (NEUTRAL[:, 1] < lowest)
    corners = {*MOUTH_CORNERS, *OUTER_MOUTH_CORNERS, 62, 292, 191, 415, 95, 324}
    return [int(i) for i in np.flatnonzero(beside & between) if i < MESH_POINTS and i not in corners]


LEFT_OUT = {
    "common": [*UPPER_INNER, *LOWER_INNER, *LID_POINTS],
    "head": [*LOWER_INNER, *_flat(LOWER_LIP_ROWS), *LID_POINTS],
    "jaw": [*UPPER_INNER, *_flat(UPPER_LIP_ROWS), *LID_POINTS, *_above_mouth()],
}
"""Face points which each field must not follow."""


COLUMNS = {"common": slice(OF_LOWER, RANK - OF_UPPER), "head": slice(OF_LOWER, RANK), "jaw": slice(0, RANK - OF_UPPER)}
"""The motion basis' columns that are not zero in each field."""


def expression_share(g: Graph, outline: Outline, targets: npt.NDArray[np.float32]) -> Value:
    """[n, 1] part of the expression fields that is left at targets [n, 2]: 1 on the face, 0 from ENDS_AT on and at the
    crop's border. What the fit leaves there is not motion of the face: hair and background would swim when it speaks.
    """
    x, y = (((g.constant(targets) - outline.centre[0:2]) / outline.half[0:2])[:, axis] for axis in (0, 1))
    lowness = y.clip(0, 1)
    begin, end = (lowness * (low - high) + high for high, low in (FADES_FROM, ENDS_AT))
    share = 1 - g.smoothstep(((x * x + y * y).sqrt() - begin) / (end - begin))
    return share.unsqueeze(1) * border_share(targets, BORDER_HOLDS)


class NodeSet:
    """Nodes of the expression fields, with the fields to which each belongs."""

    def __init__(self, g: Graph) -> None:
        self.g = g
        self._positions: list[Value] = []
        self._values: list[Value] = []
        self._masks: dict[str, list[Value]] = {"common": [], "head": [], "jaw": []}

    def add(self, count: int, positions: Value, values: Value, *fields: str, mask: Value | None = None) -> None:
        """`count` nodes that belong to the named fields, or by `mask` [count] to a part in them."""
        self._positions.append(positions)
        self._values.append(values)
        for field, masks in self._masks.items():
            member = self.g.constant(np.full(count, float(field in fields), np.float32))
            masks.append(member if mask is None else member * mask)

    def add_face(self, positions: Value, values: Value, seen: Value) -> None:
        """The 468 points of the mesh, each field without those it must not follow; `seen` [468]: the part of each."""
        self._positions.append(positions)
        self._values.append(values)
        for field, masks in self._masks.items():
            member = np.ones(MESH_POINTS, np.float32)
            member[LEFT_OUT[field]] = 0
            masks.append(seen * member)

    def fields(self, targets: Value, count: int, *names: str) -> list[Value]:
        """The named fields at the targets [count, 2]: each [count, its COLUMNS]."""
        join = self.g.concat
        values = join(self._values, axis=0)
        return moving_least_squares(
            self.g, targets, count, join(self._positions, axis=0), [values[:, COLUMNS[name]] for name in names],
            [join(self._masks[name], axis=0) for name in names], SOFTENING, ridge=1.0,
        )  # fmt: skip


def _beyond_lips(g: Graph, points: Value, mouth: MouthRegion, edge: list[int], side: float) -> tuple[Value, Value]:
    """Positions [9, 2] beyond a lip's edge, at half the reach and at the whole of it.

    They copy the edge's motion, so that the layer moves as one piece on the far side of the slit.
    """
    at = points.take(edge)[:, 0:2]
    u, _ = mouth.frame.local_points(at)
    from_corner = g.minimum((u - mouth.upper[0][0]).abs(), (mouth.upper[0][-1] - u).abs())
    reach = g.minimum(mouth.width * 0.10, from_corner * 0.5).unsqueeze(1) * side
    beyond = reach * _down(g, mouth.frame.sin, mouth.frame.cos)
    return at + beyond * 0.5, at + beyond


def _seen(points: Value) -> Value:
    """[468] 0 for points on the far side of a turned face, which lie behind skin that moves otherwise, 1 for others.

    `points` [468, 3], pixels.
    """
    x, y, z = (points[:, axis : axis + 1] for axis in range(3))
    dx, dy = x - x.transpose(1, 0), y - y.transpose(1, 0)
    behind = (z - z.transpose(1, 0) - (dx * dx + dy * dy).sqrt() * HIDDEN_SLOPE).max(1)
    return 1 - points.graph.smoothstep(behind / HIDDEN_OVER) * SIDES


def _down(g: Graph, sin: Value, cos: Value) -> Value:
    return g.concat([(-sin).reshape(1, 1), cos.reshape(1, 1)], axis=1)


def expression_nodes(g: Graph, points: Value, values: Value, outline: Outline, mouth: MouthRegion) -> NodeSet:
    """All nodes; `values` [478, rank] is the expression of each landmark."""
    every = ("common", "head", "jaw")
    nodes = NodeSet(g)
    face = points[:MESH_POINTS]
    seen = _seen(face)
    nodes.add_face(face[:, 0:2], values[:MESH_POINTS], seen)
    after = [*FACE_OUTLINE[1:], FACE_OUTLINE[0]]
    both_seen = g.minimum(seen.take(FACE_OUTLINE), seen.take(after)).clip(LEAST_HELD, None)
    for share in OUTLINE_BETWEEN:
        at, moves = (
            each.take(FACE_OUTLINE) * (1 - share) + each.take(after) * share for each in (face[:, 0:2], values)
        )
        nodes.add(len(after), at, moves, *every, mask=both_seen)
    for size, at_chin, above in FALLOFF_RINGS:
        part = outline.lowness * (at_chin - above) + above
        nodes.add(len(FACE_OUTLINE), outline.ring(size), values.take(FACE_OUTLINE) * part, *every)
    coordinates = np.linspace(-40, SIZE + 40, 7).round()
    still = np.array([(x, y) for x in coordinates for y in coordinates], np.float32)
    from_face = (g.constant(still) - outline.centre[0:2]) / outline.half[0:2]
    outside = ((from_face * from_face).sum(1) > 2.9**2).cast()
    zeros = values[0:1] * np.zeros((len(still), 1), np.float32)
    nodes.add(len(still), g.constant(still), zeros, *every, mask=outside)
    for edge, side, field in ((UPPER_INNER, 1.0, "head"), (LOWER_INNER, -1.0, "jaw")):
        for positions in _beyond_lips(g, points, mouth, edge, side):
            nodes.add(len(edge), positions, values.take(edge), field)
    return nodes
