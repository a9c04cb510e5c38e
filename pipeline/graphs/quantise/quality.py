"""How good a picture or a motion is, against the one that the float32 graph makes."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.generic]

WINDOW, SIGMA = 11, 1.5
K1, K2 = 0.01, 0.03


def squared_error(found: Array, wanted: Array) -> float:
    """Mean squared difference."""
    return float(np.mean(np.square(found.astype(np.float64) - wanted.astype(np.float64))))


def decibel(error: float, peak: float = 1.0) -> float:
    """PSNR of a mean squared error, 10 log10(peak² / error); `inf` for none."""
    return math.inf if error == 0 else 10 * math.log10(peak**2 / error)


def ssim(found: Array, wanted: Array, peak: float = 1.0) -> float:
    """Structural similarity, at most 1: the mean over channels and places.

    Wang et al., 2004, "Image quality assessment", eq. 13, with the Gaussian window of its section III-C.

    Args:
        found, wanted: [..., H, W]; the window of 11 pixels is cut where a side is shorter.
        peak: the range of the values.
    """
    a, b = found.astype(np.float64), wanted.astype(np.float64)
    mean_a, mean_b = _blurred(a), _blurred(b)
    variance_a, variance_b = _blurred(a * a) - mean_a**2, _blurred(b * b) - mean_b**2
    covariance = _blurred(a * b) - mean_a * mean_b
    c1, c2 = (K1 * peak) ** 2, (K2 * peak) ** 2
    brightness = (2 * mean_a * mean_b + c1) / (mean_a**2 + mean_b**2 + c1)
    structure = (2 * covariance + c2) / (variance_a + variance_b + c2)
    return float(np.mean(brightness * structure))


def _blurred(image: NDArray[np.float64]) -> NDArray[np.float64]:
    for axis in (-2, -1):
        size = min(WINDOW, image.shape[axis])
        taps = np.exp(-0.5 * ((np.arange(size) - (size - 1) / 2) / SIGMA) ** 2)
        taps /= taps.sum()
        length = image.shape[axis] - size + 1
        parts = [tap * image.take(range(start, start + length), axis) for start, tap in enumerate(taps)]
        image = np.sum(parts, axis=0)
    return image


def relative_error(found: Array, wanted: Array) -> float:
    """Root mean squared difference, in units of the standard deviation that each last-axis column of `wanted` has.

    Columns that never change count by the mean deviation of all.
    """
    a, b = (array.astype(np.float64).reshape(-1, array.shape[-1]) for array in (found, wanted))
    spread = b.std(axis=0)
    spread = np.where(spread > 0, spread, spread.mean() or 1.0)
    return float(np.sqrt(np.mean(np.square((a - b) / spread))))
