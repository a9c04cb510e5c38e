"""A model that runs: an ONNX Runtime session with its tensors bound by role.

ONNX Runtime is imported late, so that a missing build is one clear error and not an import failure.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ..errors import ModelError, PackError, RuntimeMissingError
from ..packs.manifest import ModelSpec, Tensor

Array = NDArray[np.generic]

INSTALL_HINT = (
    "onnxruntime is not installed; install one of its builds: "
    'pip install "talkreel[cpu]" (or [gpu], [openvino]; one only, two together break each other)'
)


class Model(Protocol):
    """What the stages need of a model: named arrays in, named arrays out."""

    @property
    def provider(self) -> str:
        """Execution provider that runs it, as ONNX Runtime names it."""

    def side(self, role: str) -> int:
        """Length of the last axis of an input, as the manifest gives it."""

    def run(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """Run once; arrays by role."""

    def terminate(self) -> None:
        """End a run that is under way in another thread."""


def onnxruntime() -> ModuleType:
    """The installed onnxruntime.

    Raises:
        RuntimeMissingError: none is installed.
    """
    try:
        import onnxruntime as module
    except ModuleNotFoundError as error:
        raise RuntimeMissingError(INSTALL_HINT) from error
    except ImportError as error:
        raise RuntimeMissingError(f"onnxruntime does not load ({_first_line(error)}); install it again") from error
    if not hasattr(module, "InferenceSession"):  # the folder is left behind when one of two builds is removed
        raise RuntimeMissingError("onnxruntime is damaged (two builds together?); remove them, then: " + INSTALL_HINT)
    return module


@dataclass(frozen=True)
class RuntimeOptions:
    """How models run on this machine. `threads`: cores that a model may use, None = every core allowed."""

    threads: int | None = None
    providers: tuple[str, ...] = ("CPUExecutionProvider",)

    @property
    def thread_count(self) -> int:
        return self.threads or cores_allowed()


def cores_allowed() -> int:
    """Cores that this process may use (a cpuset counts), or where the system cannot say, those there are."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class Session:
    """An ONNX Runtime session that knows its tensors by role.

    Args:
        path: the .onnx file.
        spec: its tensors, from the manifest; names and shapes are checked against the graph.
        options: threads and execution providers.

    Raises:
        RuntimeMissingError: no onnxruntime. PackError: the graph lacks a tensor that the manifest names,
        or its shape differs. ModelError: the file does not load.
    """

    def __init__(self, path: Path, spec: ModelSpec, options: RuntimeOptions) -> None:
        ort = onnxruntime()
        settings = ort.SessionOptions()
        settings.intra_op_num_threads = 1 if spec.parallel == "runs" else options.thread_count
        settings.inter_op_num_threads = 1
        settings.log_severity_level = 3
        # Threads that spin between runs would take the cores of the encoder and of other workers.
        settings.add_session_config_entry("session.intra_op.allow_spinning", "0")
        try:
            self._session = ort.InferenceSession(str(path), settings, providers=list(options.providers))
        except Exception as error:  # onnxruntime raises classes of its own, all below Exception
            raise ModelError(f"{path} does not load ({_first_line(error)}); verify the pack") from error
        self._running: set[Any] = set()
        self._path = path
        self._spec = spec
        self._check("input", spec.inputs, self._session.get_inputs())
        self._check("output", spec.outputs, self._session.get_outputs())
        self._output_names = [tensor.name for tensor in spec.outputs.values()]

    @property
    def provider(self) -> str:
        return str(self._session.get_providers()[0])

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
            raise ModelError(f"{self._path.name} failed while running ({_first_line(error)})") from error
        finally:
            self._running.discard(options)
        return dict(zip(self._spec.outputs, outputs, strict=True))

    def terminate(self) -> None:
        """End the runs that are under way, from another thread: they raise ModelError at their next node."""
        for options in tuple(self._running):
            options.terminate = True


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
