"""Inputs that stay the same from run to run, kept where the model runs: appearance features, for all key frames."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .library import onnxruntime
from .providers import Rung

Array = NDArray[np.generic]


@dataclass(frozen=True, eq=False)
class Fixed:
    """Inputs of many runs.

    `owner`: what they belong to; while it lives, they may be kept on a device, and no longer: who forgets a portrait
    frees its features everywhere. `arrays`: by role; the same for the same owner.
    """

    owner: object
    arrays: Mapping[str, Array]


class DeviceValues:
    """Copies of fixed inputs in the memory of one session's device, one for each owner that lives.

    In the host's memory nothing is copied: the values are views of the arrays.

    Args:
        rung: where the session runs.
    """

    def __init__(self, rung: Rung) -> None:
        self._memory, self._device = rung.memory
        self._lock = threading.Lock()
        self._values: dict[int, dict[str, Any]] = {}

    def __len__(self) -> int:
        """Owners whose inputs are held."""
        return len(self._values)

    def of(self, fixed: Fixed) -> Mapping[str, Any]:
        """onnxruntime.OrtValue by role; copied to the device at the owner's first run."""
        key = id(fixed.owner)
        with self._lock:
            if key not in self._values:
                self._values[key] = {role: self._value(array) for role, array in fixed.arrays.items()}
                weakref.finalize(fixed.owner, _drop, weakref.ref(self), key).atexit = False
            return self._values[key]

    def _value(self, array: Array) -> Any:
        return onnxruntime().OrtValue.ortvalue_from_numpy(np.ascontiguousarray(array), self._memory, self._device)


def _drop(held: weakref.ref[DeviceValues], key: int) -> None:
    values = held()
    if values is not None:
        values._values.pop(key, None)
