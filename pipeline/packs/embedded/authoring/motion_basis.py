"""Makes data/motion_basis.npy: the patterns of landmark motion that the warp can show.

The warp of every grid node by all 478 landmarks would be a matrix of 16384 x 478; its rows vary
freely, but the motions asked of it do not. So it is kept times an orthonormal basis of those
motions: each fold above an eye, each inner lip point, affine motions, and the main directions of
the 52 measured units and of the guard's corrections. Points that one layer of the warp must not
follow have columns of their own, so that each layer needs only a part of the columns. Lids and irises
are in none: they are drawn apart from the warp.

Run once: `python -m pipeline.packs.embedded.authoring.motion_basis`. The result is committed
because the last bits of an SVD depend on the machine.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from .anatomy import DATA, EYES, LOWER_INNER, MESH_POINTS, NEUTRAL, POINTS, UPPER_INNER, scatter
from .guard import LIP_GUARD
from .lid_curves import LID_POINTS
from .mouth_units import mouth_units

PATH = DATA / "motion_basis.npy"
RANK = 90

OF_LOWER = len(LOWER_INNER)
"""Columns of the lower lip's edge: the first."""

OF_UPPER = len(UPPER_INNER)
"""Columns of the upper lip's edge: the last."""


def motion_basis(rank: int = RANK) -> npt.NDArray[np.float32]:
    """[478, rank] orthonormal columns; the share of the units' energy left out is printed by `main`."""
    lower = [{point: 1.0} for point in LOWER_INNER]
    folds = [{fold: 1.0} for eye in EYES for fold in eye.upper_fold]
    upper = [{point: 1.0} for point in UPPER_INNER]
    alone = [_orthonormal(scatter(columns)) for columns in (lower, folds, upper)]  # no point is in two columns
    exact = np.hstack(alone)
    affine = _followed(np.column_stack([NEUTRAL, np.ones(POINTS)]))
    exact = np.hstack([exact, _orthonormal(_remove(exact, affine))])
    directions, _, _ = np.linalg.svd(_remove(exact, _wanted_motions()), full_matrices=False)
    shared = [exact[:, -affine.shape[1] :], directions[:, : rank - exact.shape[1]], alone[1]]
    return np.hstack([alone[0], *shared, alone[2]]).astype(np.float32)


def _orthonormal(columns: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    vectors, triangle = np.linalg.qr(columns.astype(np.float64))
    return vectors * np.sign(np.diag(triangle))


def _wanted_motions() -> npt.NDArray[np.float64]:
    units = mouth_units().astype(np.float64).transpose(1, 0, 2).reshape(POINTS, -1)
    return _followed(np.hstack([units, LIP_GUARD.corrections() * 0.02]))


def _followed(motions: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """The motions [478, n] without those of lids and irises."""
    followed = motions.astype(np.float64)
    followed[[*LID_POINTS, *range(MESH_POINTS, POINTS)]] = 0
    return followed


def _remove(basis: npt.NDArray[np.float64], motions: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    return motions - basis @ (basis.T @ motions)


def main() -> None:
    basis = motion_basis()
    wanted = _wanted_motions()
    left_out = (_remove(basis.astype(np.float64), wanted) ** 2).sum() / (wanted**2).sum()
    print(f"{basis.shape[1]} columns, energy left out {left_out:.2e}")
    np.save(PATH, basis)


if __name__ == "__main__":
    main()
