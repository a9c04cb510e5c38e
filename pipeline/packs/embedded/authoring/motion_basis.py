"""Makes data/motion_basis.npy: the patterns of landmark motion that the warp can show.

The warp of every grid node by all 478 landmarks would be a matrix of 16384 x 478; its rows vary
freely, but the motions asked of it do not. So it is kept times an orthonormal basis of those
motions: affine ones, each lid point with its fold, each inner lip point, the irises, and the main
directions of the 52 measured units and of the guard's corrections.

Run once: `python -m pipeline.packs.embedded.authoring.motion_basis`. The result is committed
because the last bits of an SVD depend on the machine.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from .anatomy import DATA, EYES, LOWER_INNER, NEUTRAL, POINTS, UNIT_OFFSETS, UPPER_INNER, scatter
from .guard import LID_GUARD, LIP_GUARD
from .portrait import FOLD_SHARE

PATH = DATA / "motion_basis.npy"
RANK = 108


def motion_basis(rank: int = RANK) -> npt.NDArray[np.float32]:
    """[478, rank] orthonormal columns; the share of the units' energy left out is printed by `main`."""
    affine = np.column_stack([NEUTRAL, np.ones(POINTS)])
    columns: list[dict[int, float]] = []
    for eye in EYES:
        columns += [{upper: 1, fold: FOLD_SHARE} for upper, fold in zip(eye.upper, eye.upper_fold, strict=True)]
        columns += [{lower: 1} for lower in eye.lower]
        columns += [dict.fromkeys(eye.iris, 1.0)]
    columns += [{point: 1} for point in [*UPPER_INNER, *LOWER_INNER]]
    exact, _ = np.linalg.qr(np.column_stack([affine, scatter(columns)]).astype(np.float64))
    rest = _remove(exact, _wanted_motions())
    directions, _, _ = np.linalg.svd(rest, full_matrices=False)
    return np.hstack([exact, directions[:, : rank - exact.shape[1]]]).astype(np.float32)


def _wanted_motions() -> npt.NDArray[np.float64]:
    units = UNIT_OFFSETS.astype(np.float64).transpose(1, 0, 2).reshape(POINTS, -1)
    corrections = np.hstack([LIP_GUARD.corrections(), LID_GUARD.corrections()]) * 0.02
    return np.hstack([units, corrections])


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
