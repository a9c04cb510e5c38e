"""The noise schedule that the denoiser is made for."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

STEPS = 12
"""Of sampling: as good as 50 (MODEL_CARD.md), and done in time on two cores."""


def cosine_schedule(steps: int = STEPS) -> npt.NDArray[np.float64]:
    """[steps + 1, 2] alpha, alpha_bar: Nichol & Dhariwal 2021, eq. 17, s = 0.008; row 0 is the clean end.

    Rounded, so that it is the same on every machine.
    """
    bar = np.cos((np.arange(steps + 1) / steps + 0.008) / 1.008 * np.pi / 2) ** 2
    alpha = np.round(1 - np.clip(1 - bar[1:] / bar[:-1], 1e-4, 0.999), 6)
    alpha = np.concatenate([[1.0], alpha])
    products = [1.0]
    for value in alpha[1:]:  # one after another: the order of a vectorised product differs by machine
        products.append(products[-1] * float(value))
    return np.stack([alpha, np.round(products, 9)], axis=1)
