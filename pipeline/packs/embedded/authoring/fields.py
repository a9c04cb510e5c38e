"""Scattered-data interpolation and small linear algebra as graph expressions."""

from __future__ import annotations

from collections.abc import Sequence

from .writer import Graph, Value


def inverse_transpose(matrix: Value) -> Value:
    """Inverse transpose of a 3 x 3 matrix in closed form: its cofactors over its determinant."""

    def minor(rows: list[int], columns: list[int]) -> Value:
        return matrix.take(rows, axis=0).take(columns, axis=1)

    first, second = [1, 2, 0], [2, 0, 1]
    cofactors = minor(first, first) * minor(second, second) - minor(first, second) * minor(second, first)
    return cofactors / (matrix[0] * cofactors[0]).sum(0)


BAND = 2048
"""Targets whose weights are in memory at once: keeps a large field within the processor's cache."""


def moving_least_squares(
    g: Graph,
    targets: Value,
    count: int,
    nodes: Value,
    values: Sequence[Value],
    masks: Sequence[Value],
    softening: float,
    ridge: float,
) -> list[Value]:
    """Affine moving least squares at `targets` [count, 2] from values at `nodes` [m, 2].

    One field [count, r] for each of `values` [m, r] and its mask [m] (the weight of each node in that
    field), from one distance matrix. Weights fall as 1 / (distance^2 + softening^2)^2. The affine fit
    is in closed form: the weighted mean, corrected by the weighted covariance, to which 2 % of its
    trace plus `ridge` (squared units of the coordinates) is added where nodes are in line (Schaefer
    et al., "Image deformation using moving least squares", 2006).
    """
    bands = []
    for start in range(0, count, BAND):
        band = targets[start : start + BAND] if count > BAND else targets
        dx = nodes[:, 0].unsqueeze(0) - band[:, 0:1]
        dy = nodes[:, 1].unsqueeze(0) - band[:, 1:2]
        nearness = 1 / (dx * dx + dy * dy + softening * softening)
        nearness = nearness * nearness
        bands.append([
            _fit(nearness * mask.unsqueeze(0), dx, dy, ridge) @ of_field
            for of_field, mask in zip(values, masks, strict=True)
        ])  # fmt: skip
    if len(bands) == 1:
        return bands[0]
    return [g.concat(parts, axis=0) for parts in zip(*bands, strict=True)]


def _fit(weight: Value, dx: Value, dy: Value, ridge: float) -> Value:
    """[n, m] weights of the affine fit at distance zero, from plain weights and distances [n, m]."""
    weight = weight / weight.sum(1, keep=True)
    mean_x = (weight * dx).sum(1, keep=True)
    mean_y = (weight * dy).sum(1, keep=True)
    ax, ay = dx - mean_x, dy - mean_y
    wx, wy = weight * ax, weight * ay
    sxx, sxy, syy = ((a * b).sum(1, keep=True) for a, b in ((wx, ax), (wx, ay), (wy, ay)))
    extra = (sxx + syy) * 0.02 + ridge
    sxx, syy = sxx + extra, syy + extra
    determinant = sxx * syy - sxy * sxy
    slope_x = (sxy * mean_y - syy * mean_x) / determinant
    slope_y = (sxy * mean_x - sxx * mean_y) / determinant
    return weight + slope_x * wx + slope_y * wy
