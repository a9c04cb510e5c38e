"""Studios for tests of films: one that prepares once, and models whose generator fails where a test says."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

from pipeline import RuntimeOptions, open_pack
from pipeline.runtime.binding import Fixed
from pipeline.runtime.models import Models
from pipeline.runtime.places import Place
from pipeline.runtime.providers import CPU
from pipeline.runtime.session import Array, Model
from pipeline.runtime.spent import Spent
from pipeline.studio import Studio
from pipeline.values import Appearance, Motion, Portrait

ONE_BY_ONE = RuntimeOptions(threads=1)
"""Runs of the generator in the order of the frames, so that the n-th can be spoiled."""


class Prepared(Studio):
    """Makes a portrait, its appearance and a motion once: for tests of what comes after them, with one portrait, voice
    and seed."""

    @cached_property
    def _made(self) -> dict[str, Any]:
        return {}

    def _once(self, what: str, make: Callable[[], Any]) -> Any:
        if what not in self._made:
            self._made[what] = make()
        return self._made[what]

    def prepare_portrait(self, *given: Any) -> Portrait:
        return self._once("portrait", lambda: Studio.prepare_portrait(self, *given))

    def make_appearance(self, *given: Any) -> Appearance:
        return self._once("appearance", lambda: Studio.make_appearance(self, *given))

    def make_motion(self, *given: Any, **more: Any) -> Motion:
        return self._once("motion", lambda: Studio.make_motion(self, *given, **more))


class Faulty:
    """The generator with some of its runs spoiled: run number -> what it returns instead."""

    def __init__(self, model: Model, faults: dict[int, np.ndarray]) -> None:
        self.model = model
        self.spoil(faults)

    def spoil(self, faults: dict[int, np.ndarray], always: np.ndarray | None = None) -> None:
        """Runs count from here on. `always`: what every other run returns."""
        self.faults = faults
        self.always = always
        self.runs = 0

    place = Place("fake.onnx", CPU)
    predicted_bytes = 0

    def spent(self) -> Spent:
        return self.model.spent()

    def side(self, role: str) -> int:
        return self.model.side(role)

    def terminate(self) -> None:
        self.model.terminate()

    def run(self, inputs: dict[str, Array], fixed: Fixed | None = None) -> dict[str, Array]:
        fault = self.faults.get(self.runs, self.always)
        self.runs += 1
        return self.model.run(inputs, fixed) if fault is None else {"image": fault}


class FaultyModels(Models):
    """The embedded pack's models with a faulty generator."""

    def __init__(self) -> None:
        super().__init__(open_pack(), ONE_BY_ONE)
        self.faulty = Faulty(super().get("generator_256"), {})

    def get(self, name: str, variant: str | None = None) -> Model:
        return self.faulty if name == "generator_256" else super().get(name, variant)
