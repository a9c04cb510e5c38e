"""Gaussian processes of the idle life: slow head pose, gaze, brows, and the rhythm of blinks.

`python -m pipeline.packs.embedded.authoring.idle_motion` writes data/idle_motion.npz. The file is kept
with the code and not made anew with the graphs, since the last bits of an eigendecomposition
differ between machines.

A process has zero mean, unit variance and the covariance kernel(|i - j|). Of the W frames of a window,
given the P frames before it, the mean is `carry` @ previous and the covariance
`modes` @ diag(`variances`) @ `modes`.T (Rasmussen & Williams 2006, eq. 2.19).
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

F64 = NDArray[np.floating[Any]]

TABLES = Path(__file__).parent / "data" / "idle_motion.npz"

FPS, WINDOW, PREVIOUS = 25, 100, 10

NUGGET = 1e-4
"""Variance of the previous frames' own inaccuracy; without it their slope is overrated."""

LEAST_VARIANCE = 1e-3
"""Modes below this variance are left out: they are movements of a hundredth of a degree."""


def bell(seconds: float) -> Callable[[F64], F64]:
    """Smooth wandering whose memory fades over this time."""
    return lambda lag: np.exp(-0.5 * (lag / seconds) ** 2)


KERNELS: dict[str, Callable[[F64], F64]] = {
    # mostly a slow drift (about 0.2 Hz), and livelier turns (about 0.45 Hz)
    "head": lambda lag: 0.7 * bell(0.8)(lag) + 0.3 * bell(0.35)(lag),
    "glance": bell(0.9),
    "blink": bell(0.15),
    # What the network may add: nods, turns, raised brows; and bumps that make a blink.
    "accent": bell(0.13),
    "lid": bell(0.1),
}


def conditional(kernel: Callable[[F64], F64]) -> tuple[F64, F64, F64]:
    """`carry` [W, P], `modes` [W, R], `variances` [R] of a window given the frames before it."""
    frames = np.arange(PREVIOUS + WINDOW)
    covariance = kernel(np.abs(frames[:, None] - frames) / FPS)
    before, cross, own = (
        covariance[:PREVIOUS, :PREVIOUS],
        covariance[PREVIOUS:, :PREVIOUS],
        covariance[PREVIOUS:, PREVIOUS:],
    )
    carry = np.linalg.solve(before + NUGGET * np.eye(PREVIOUS), cross.T).T
    variances, modes = np.linalg.eigh(own - carry @ cross.T)
    kept = np.flatnonzero(variances > LEAST_VARIANCE)[::-1]
    modes = modes[:, kept] * np.sign(modes[np.abs(modes[:, kept]).argmax(0), kept])
    return carry, modes, variances[kept]


def main() -> None:
    """Write the tables, rounded to what the graph needs of them."""
    tables: dict[str, Any] = {}
    for name, kernel in KERNELS.items():
        for part, table in zip(("carry", "modes", "variances"), conditional(kernel), strict=True):
            tables[f"{name}_{part}"] = np.round(table, 6).astype(np.float32)
    np.savez_compressed(TABLES, **tables)


if __name__ == "__main__":
    main()
