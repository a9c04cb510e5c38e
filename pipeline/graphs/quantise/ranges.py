"""From a tensor's values to the scale and zero point that represent it in 8 bits."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from .calibration import Observed

SHARES = np.geomspace(0.02, 1, 80)
"""Parts of the range seen, among which the best is looked for."""

BINS = 2048
"""Of the histogram that stands for the values."""

TOP = 255
"""Greatest integer of 8 bits."""

PERCENTILE = 99.99
"""Of the values, what the range `percentile` keeps."""


@dataclass(frozen=True)
class Scale:
    """A real number is (integer - zero) · scale, with integers of 0 to 255."""

    scale: np.float32
    zero: np.uint8

    def rounded(self, values: np.ndarray) -> np.ndarray:
        """What quantising and going back makes of numbers."""
        integers = np.clip(np.round(values / self.scale) + int(self.zero), 0, TOP)
        return (integers - int(self.zero)) * self.scale


def scale_of(low: float, high: float) -> Scale:
    """For numbers from `low` to `high`; zero is always one of the numbers represented, as padding needs it."""
    low, high = min(low, 0.0), max(high, 0.0)
    scale = np.float32((high - low) / TOP) or np.float32(1)
    return Scale(scale, np.uint8(np.clip(round(-low / float(scale)), 0, TOP)))


def whole(observed: Observed) -> tuple[float, float]:
    """All values seen."""
    return observed.low, observed.high


def percentile(observed: Observed) -> tuple[float, float]:
    """All but 1 - PERCENTILE at each end."""
    low, high = np.percentile(observed.sample, [100 - PERCENTILE, PERCENTILE])
    return float(low), float(high)


def least_squares(observed: Observed) -> tuple[float, float]:
    """The part of the values' range that leaves the smallest mean squared error, clipped values included."""
    counts, edges = np.histogram(observed.sample, BINS)
    middles = (edges[:-1] + edges[1:]) / 2

    def error(low: float, high: float) -> float:
        rounded = scale_of(low, high).rounded(middles)
        return float(counts @ np.square(rounded - middles))

    low, high = min(observed.low, 0.0), max(observed.high, 0.0)
    for _ in range(2):  # one end after the other, twice
        low = min((share * observed.low for share in SHARES), key=lambda end: error(end, high))
        high = min((share * observed.high for share in SHARES), key=lambda end: error(low, end))
    return low, high


RANGES: Mapping[str, Callable[[Observed], tuple[float, float]]] = {
    "minmax": whole,
    "percentile": percentile,
    "mse": least_squares,
}
"""Ways to choose a range, by name."""
