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


def moving_least_squares(
    g: Graph,
    targets: Value,
    nodes: Value,
    values: Value,
    masks: Sequence[Value],
    softening: float,
    ridge: float,
) -> list[Value]:
    """Affine moving least squares at `targets` [n, 2] from `values` [m, r] at `nodes` [m, 2].

    One field [n, r] for each mask [m] (the weight of each node in that field), from one distance
    matrix. Weights fall as 1 / (distance^2 + softening^2)^2. The affine fit is in closed form: the
    weighted mean, corrected by the weighted covariance, to which 2 % of its trace plus `ridge`
    (squared units of the coordinates) is added where nodes are in line (Schaefer et al., "Image
    deformation using moving least squares", 2006).
    """
    dx = nodes[:, 0].unsqueeze(0) - targets[:, 0:1]
    dy = nodes[:, 1].unsqueeze(0) - targets[:, 1:2]
    nearness = 1 / (dx * dx + dy * dy + softening * softening)
    nearness = nearness * nearness
    fields = []
    for mask in masks:
        weight = nearness * mask.unsqueeze(0)
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
        fields.append((weight + slope_x * wx + slope_y * wy) @ values)
    return fields
