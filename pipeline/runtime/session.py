"""A model that runs: an ONNX Runtime session with its tensors bound by role."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ..errors import ModelError, PackError
from ..packs.manifest import ModelSpec, Tensor
from .ladder import Ladder
from .library import onnxruntime
from .messages import one_line
from .places import Fall, Place
from .providers import Rung

Array = NDArray[np.generic]


class Model(Protocol):
    """What the stages need of a model: named arrays in, named arrays out."""

    @property
    def place(self) -> Place:
        """Where it runs."""

    def side(self, role: str) -> int:
        """Length of the last axis of an input, as the manifest gives it."""

    def run(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """Run once; arrays by role."""

    def terminate(self) -> None:
        """End a run that is under way in another thread."""


class Session:
    """An ONNX Runtime session that knows its tensors by role.

    Args:
        path: the .onnx file.
        spec: its tensors, from the manifest; names and shapes are checked against the graph.
        ladder: opens it on the first rung that runs it.
        start: the rung to begin with, None for the first. falls: what is known of those above.

    Raises:
        RuntimeMissingError: no onnxruntime. PackError: the graph lacks a tensor that the manifest names,
        or its shape differs. ModelError: the file does not load. ProviderError: no rung runs it.
    """

    def __init__(
        self, path: Path, spec: ModelSpec, ladder: Ladder, *, start: Rung | None = None, falls: tuple[Fall, ...] = ()
    ) -> None:
        self._session, self._place = ladder.open(path, spec, start=start, falls=falls)
        self._running: set[Any] = set()
        self._path = path
        self._spec = spec
        self._check("input", spec.inputs, self._session.get_inputs())
        self._check("output", spec.outputs, self._session.get_outputs())
        self._output_names = [tensor.name for tensor in spec.outputs.values()]

    @property
    def place(self) -> Place:
        return self._place

    def side(self, role: str) -> int:
        side = self._spec.inputs[role].shape[-1]
        if side is None:
            raise PackError(f"{self._path}: input {role!r} needs a fixed size in the manifest")
        return side

    def _check(self, kind: str, wanted: Mapping[str, Tensor], found: list[Any]) -> None:
        shapes = {node.name: node.shape for node in found}
        for tensor in wanted.values():
            if tensor.name not in shapes:
                raise PackError(f"{self._path} has no {kind} {tensor.name!r}; the manifest does not fit the graph")
            shape = shapes[tensor.name]
            same = len(shape) == len(tensor.shape) and all(
                a is None or not isinstance(b, int) or a == b for a, b in zip(tensor.shape, shape, strict=True)
            )
            if not same:
                raise PackError(
                    f"{self._path}: {kind} {tensor.name!r} has shape {shape}, the manifest says {list(tensor.shape)}"
                )

    def run(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """Run once.

        Args:
            inputs: arrays by role, each of the manifest's shape and dtype.

        Raises:
            ModelError: the run failed.
        """
        feed = {tensor.name: inputs[role] for role, tensor in self._spec.inputs.items()}
        options = onnxruntime().RunOptions()
        self._running.add(options)
        try:
            outputs = self._session.run(self._output_names, feed, options)
        except Exception as error:
            raise ModelError(f"{self._path.name} failed while running ({one_line(error)})") from error
        finally:
            self._running.discard(options)
        return dict(zip(self._spec.outputs, outputs, strict=True))

    def terminate(self) -> None:
        """End the runs that are under way, from another thread: they raise ModelError at their next node."""
        for options in tuple(self._running):
            options.terminate = True
