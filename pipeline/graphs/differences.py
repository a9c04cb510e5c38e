"""How far arrays lie apart."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from .feeds import Array

ROUNDING = 2.0**-23
"""Spacing of float32 numbers next to 1: no bound is narrower than this share of the reference's largest magnitude."""


@dataclass(frozen=True)
class Error:
    """Absolute differences of an output; `inf` where one array is finite and the other is not."""

    max: float
    mean: float
    p99: float
    """99th percentile."""
    p999: float
    """99.9th percentile."""
    psnr: float
    """10 log10(range² / mean squared difference) dB, of the reference's range; `inf` for equal arrays."""
    rms: float = 0.0
    """Root of the mean squared difference."""

    def to_json(self) -> dict[str, Any]:
        """Six digits each; what is not finite as text."""
        return {name: number(value) for name, value in asdict(self).items()}


def number(value: float) -> float | str:
    """A number for JSON."""
    return float(f"{value:.6g}") if math.isfinite(value) else str(value)


def difference(found: Array, reference: Array, span: float) -> Error:
    """The error of an array.

    Args:
        found, reference: of one shape.
        span: range of the reference for the PSNR.
    """
    a, b = found.astype(np.float64).ravel(), reference.astype(np.float64).ravel()
    with np.errstate(invalid="ignore"):
        apart = np.abs(a - b)
    apart[(a == b) | (np.isnan(a) & np.isnan(b))] = 0
    apart[np.isnan(apart)] = np.inf
    if not apart.size:
        return Error(0, 0, 0, 0, math.inf)
    p99, p999 = _percentiles(apart, (0.99, 0.999))
    squared = float(np.mean(apart**2))
    psnr = math.inf if squared == 0 else -math.inf if math.isinf(squared) or span == 0 else _decibel(span**2 / squared)
    return Error(float(apart.max()), float(apart.mean()), p99, p999, psnr, math.sqrt(squared))


def largest(errors: Sequence[Error]) -> Error | None:
    """The worst of each figure; None of none."""
    if not errors:
        return None
    return Error(
        max=max(error.max for error in errors),
        mean=max(error.mean for error in errors),
        p99=max(error.p99 for error in errors),
        p999=max(error.p999 for error in errors),
        psnr=min(error.psnr for error in errors),
        rms=max(error.rms for error in errors),
    )


def span_of(array: Array) -> float:
    """Largest less smallest finite number."""
    finite = array[np.isfinite(array)] if array.dtype.kind == "f" else array
    return float(finite.max()) - float(finite.min()) if finite.size else 0.0


def magnitude_of(array: Array) -> float:
    """The largest finite magnitude."""
    finite = array[np.isfinite(array)] if array.dtype.kind == "f" else array
    return float(np.abs(finite.astype(np.float64)).max(initial=0.0))


def _percentiles(values: np.ndarray, shares: Sequence[float]) -> list[float]:
    """The smallest value that the given share of all do not exceed."""
    places = [min(values.size - 1, math.ceil(share * values.size) - 1) for share in shares]
    ordered = np.partition(values, places)
    return [float(ordered[place]) for place in places]


def _decibel(ratio: float) -> float:
    return 10 * math.log10(ratio)
