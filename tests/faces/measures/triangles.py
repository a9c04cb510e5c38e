"""A triangle mesh over the face's landmarks, and how many of its triangles a frame turns over."""

from __future__ import annotations

from functools import cache
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from pipeline.packs.embedded.authoring.anatomy import (
    EYES,
    LOWER_EDGE,
    LOWER_INNER,
    LOWER_LIP_ROWS,
    MESH_POINTS,
    NEUTRAL,
    UPPER_EDGE,
    UPPER_INNER,
    UPPER_LIP_ROWS,
)  # fmt: skip

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]

LIPS = tuple(frozenset(chain(*rows)) for rows in ([UPPER_INNER, *UPPER_LIP_ROWS], [LOWER_INNER, *LOWER_LIP_ROWS]))
SLIT = frozenset([*UPPER_EDGE, *LOWER_EDGE, *(p for eye in EYES for p in (*eye.upper_edge, *eye.lower_edge))])


@cache
def face_triangles() -> I64:
    """[T, 3] Delaunay triangles of the average face seen from the front, without those that bridge lips or lids (they
    close with them, and there is no skin in them)."""
    triangles = delaunay(NEUTRAL[:MESH_POINTS, :2].astype(np.float64))
    bridging = [all(lip.intersection(t) for lip in LIPS) or SLIT.issuperset(t) for t in triangles.tolist()]
    return triangles[~np.array(bridging)]


def delaunay(points: F64) -> I64:
    """[T, 3] by inserting points one by one (Bowyer, Watson 1981)."""
    middle, reach = points.mean(0), 50 * float(np.ptp(points, axis=0).max())
    every = np.concatenate([points, middle + reach * np.array([[-1, -1], [1, -1], [0, 1.0]])])
    n = len(points)
    triangles = np.array([[n, n + 1, n + 2]])
    for k in range(n):
        a, b, c = (every[triangles[:, i]] - every[k] for i in range(3))
        squares = [(v**2).sum(1) for v in (a, b, c)]
        inside = (
            squares[0] * (b[:, 0] * c[:, 1] - c[:, 0] * b[:, 1])
            - squares[1] * (a[:, 0] * c[:, 1] - c[:, 0] * a[:, 1])
            + squares[2] * (a[:, 0] * b[:, 1] - b[:, 0] * a[:, 1])
        )
        bad = inside * np.sign(areas(every, triangles)) > 0
        edges: dict[tuple[int, int], int] = {}
        for t in triangles[bad].tolist():
            for i, j in ((t[0], t[1]), (t[1], t[2]), (t[2], t[0])):
                edges[min(i, j), max(i, j)] = edges.get((min(i, j), max(i, j)), 0) + 1
        rim = [[i, j, k] for (i, j), times in edges.items() if times == 1]
        triangles = np.concatenate([triangles[~bad], np.array(rim)])
    return triangles[(triangles < n).all(1)]


def areas(points: F64, triangles: I64) -> F64:
    """[T] twice the signed area of each triangle."""
    a, b, c = (points[triangles[:, i], :2] for i in range(3))
    return (b[:, 0] - a[:, 0]) * (c[:, 1] - a[:, 1]) - (b[:, 1] - a[:, 1]) * (c[:, 0] - a[:, 0])


def flips(source: F64, moved: F64, least: float = 4.0) -> int:
    """Triangles whose sides changed, among those of `least` square pixels or more that face the viewer in both
    (a triangle at the face's silhouette that turns away with the head has not flipped): `source`, `moved` [478, 3]
    in pixels."""
    triangles = face_triangles()
    before, after = (areas(points, triangles) / 2 for points in (source, moved))
    facing = np.sign(np.median(before))
    seen = before * facing > least
    depth = np.ptp(source[triangles][:, :, 2], axis=1) / np.sqrt(np.abs(before) + 1e-9)
    return int((seen & (depth < 2.5) & (after * facing < -least / 4)).sum())
