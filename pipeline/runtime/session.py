"""A model that runs: an ONNX Runtime session with its tensors bound by role."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ..errors import PackError
from ..packs.manifest import ModelSpec
from .arena import ARENA
from .binding import DeviceValues, Fixed
from .faults import run_error
from .ladder import Ladder
from .places import Fall, Place
from .providers import Rung
from .spent import Spent

Array = NDArray[np.generic]


class Model(Protocol):
    """What the stages need of a model: named arrays in, named arrays out."""

    @property
    def place(self) -> Place:
        """Where it runs."""

    def side(self, role: str) -> int:
        """Length of the last axis of an input, as the manifest gives it."""

    def run(self, inputs: Mapping[str, Array], fixed: Fixed | None = None) -> dict[str, Array]:
        """Run once; arrays by role. `fixed`: further inputs, the same for many runs."""

    @property
    def predicted_bytes(self) -> int:
        """What its session is predicted to take."""

    def spent(self) -> Spent:
        """What this thread's runs took besides running, since it asked last."""

    def terminate(self) -> None:
        """End a run that is under way in another thread."""


class Session:
    """An ONNX Runtime session that knows its tensors by role.

    Args:
        path: the .onnx file, as `Pack.model_path` gives it: its tensors are the manifest's.
        spec: these tensors.
        ladder: opens it on the first rung that runs it.
        start, falls, make_room: as of `Ladder.open`.

    Raises:
        RuntimeMissingError: no onnxruntime. ModelError: the file does not load. ProviderError: no rung runs it.
    """

    def __init__(
        self,
        path: Path,
        spec: ModelSpec,
        ladder: Ladder,
        *,
        start: Rung | None = None,
        falls: tuple[Fall, ...] = (),
        make_room: Callable[[], bool] = lambda: False,
    ) -> None:
        self._session, self._place = ladder.open(path, spec, start=start, falls=falls, make_room=make_room)
        self._running: set[Any] = set()
        self._held = DeviceValues(self._place.rung)
        self._path = path
        self._spec = spec
        self._output_names = [tensor.name for tensor in spec.outputs.values()]

    @property
    def place(self) -> Place:
        return self._place

    def side(self, role: str) -> int:
        side = self._spec.inputs[role].shape[-1]
        if side is None:
            raise PackError(f"{self._path}: input {role!r} needs a fixed size in the manifest")
        return side

    def run(self, inputs: Mapping[str, Array], fixed: Fixed | None = None) -> dict[str, Array]:
        """Run once.

        Args:
            inputs: arrays by role, each of the manifest's shape and dtype.
            fixed: the other inputs; copied to the device when their owner first runs here.

        Raises:
            ModelError: the run failed. DeviceFaultError: by its device, or for want of memory. RunEndedError: it was
            ended by `terminate`.
        """
        options = ARENA.run_options()
        self._running.add(options)
        try:
            outputs = self._run(inputs, fixed, options)
        except Exception as error:
            raise run_error(self._path.name, error) from error
        finally:
            self._running.discard(options)
        return dict(zip(self._spec.outputs, outputs, strict=True))

    def _run(self, inputs: Mapping[str, Array], fixed: Fixed | None, options: Any) -> list[Array]:
        if fixed is None:
            feed = {tensor.name: inputs[role] for role, tensor in self._spec.inputs.items()}
            found: list[Array] = self._session.run(self._output_names, feed, options)
            return found
        binding, held = self._session.io_binding(), self._held.of(fixed)
        for role, tensor in self._spec.inputs.items():
            if role in held:
                binding.bind_ortvalue_input(tensor.name, held[role])
            else:
                binding.bind_cpu_input(tensor.name, np.ascontiguousarray(inputs[role]))
        for name in self._output_names:
            binding.bind_output(name)
        self._session.run_with_iobinding(binding, options)
        found = binding.copy_outputs_to_cpu()
        return found

    def terminate(self) -> None:
        """End the runs that are under way, from another thread: they raise RunEndedError at their next node."""
        for options in tuple(self._running):
            options.terminate = True
