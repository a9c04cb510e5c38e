"""Stand-ins for what a unit needs and does not test."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from pipeline.runtime.binding import Fixed
from pipeline.runtime.places import Place
from pipeline.runtime.providers import CPU
from pipeline.runtime.spent import Spent


class FakeModel:
    """A model that is a function of its named inputs; counts its runs."""

    place = Place("fake.onnx", CPU)
    predicted_bytes = 0

    def __init__(self, function: Callable[[Mapping[str, np.ndarray]], dict[str, np.ndarray]], side: int = 256) -> None:
        self.function = function
        self.runs = 0
        self._side = side

    def side(self, role: str) -> int:
        return self._side

    def terminate(self) -> None:
        pass

    def spent(self) -> Spent:
        return Spent()

    def run(self, inputs: Mapping[str, Any], fixed: Fixed | None = None) -> dict[str, np.ndarray]:
        self.runs += 1
        return self.function({**(fixed.arrays if fixed else {}), **inputs})
