"""A graph file that runs in ONNX Runtime, with inputs and outputs under the shapes they had before lowering."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import GraphError, ModelError
from ..runtime.arena import ARENA
from ..runtime.library import onnxruntime
from .feeds import Array, Feeds, Signature
from .lower.rank import SHAPES_KEY


@dataclass(frozen=True)
class RunOptions:
    """How a graph is run."""

    threads: int = 2
    optimise: bool = True
    """ONNX Runtime's own rewriting."""
    provider: str = "CPUExecutionProvider"
    settings: Mapping[str, str] = field(default_factory=dict)
    """Of the provider."""

    @classmethod
    def parse(cls, text: str, threads: int) -> RunOptions:
        """Of `PROVIDER` or `PROVIDER:key=value,key=value`; a short name such as `CUDA` will do.

        Raises:
            GraphError: it is not of this form.
        """
        name, _, rest = text.partition(":")
        pairs = [item.partition("=") for item in rest.split(",") if item]
        if not name or any(not key or not equals for key, equals, _ in pairs):
            raise GraphError(f"cannot read the provider {text!r}; give NAME or NAME:key=value,key=value")
        full = name if name.endswith("ExecutionProvider") else f"{name}ExecutionProvider"
        return cls(threads, provider=full, settings={key: value for key, _, value in pairs})


DEFAULT_RUN = RunOptions()


class Runner:
    """A session of a graph file.

    `shapes`: logical shape of each input; None for an axis without a fixed length.

    Raises:
        ModelError: the file does not load, or the provider is not there. RuntimeMissingError: no onnxruntime.
    """

    def __init__(self, path: Path, options: RunOptions = DEFAULT_RUN) -> None:
        ort = onnxruntime()
        settings = ort.SessionOptions()
        settings.intra_op_num_threads = options.threads
        settings.inter_op_num_threads = 1
        settings.log_severity_level = 3
        settings.add_session_config_entry("session.intra_op.allow_spinning", "0")  # as the stages run models
        ARENA.share(settings)  # as they do; and two sessions that are timed in turns need not hold two of them
        ARENA.released()  # most likely another runner was
        if not options.optimise:
            settings.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
        if options.provider not in ort.get_available_providers():
            raise ModelError(f"{options.provider} is not here; choose of {', '.join(ort.get_available_providers())}")
        try:
            self._session = ort.InferenceSession(
                str(path), settings, providers=[(options.provider, dict(options.settings))]
            )
        except Exception as error:  # onnxruntime's classes share no root but this
            raise ModelError(f"{path} does not load in ONNX Runtime ({error})") from error
        self.path = path
        self.names = [value.name for value in self._session.get_outputs()]
        self.lowered: dict[str, list[int]] = json.loads(
            self._session.get_modelmeta().custom_metadata_map.get(SHAPES_KEY, "{}")
        )
        self._held = {value.name: _lengths(value.shape) for value in self._session.get_inputs()}
        self.shapes = {name: self.lowered.get(name, shape) for name, shape in self._held.items()}

    def feeds(self, frames: Sequence[Feeds]) -> Feeds:
        """Inputs of one run from those of its frames: an input that takes as many frames gets them all, joined.

        Raises:
            GraphError: an input is missing, or neither one frame nor all frames fit it.
        """
        made = {}
        for name, shape in self.shapes.items():
            if name not in frames[0]:
                raise GraphError(
                    f"{self.path} has an input {name} that was not given; compare graphs with the same inputs"
                )
            array = frames[0][name]
            if not _fits(array.shape, shape):
                array = np.concatenate([frame[name] for frame in frames])
            if not _fits(array.shape, shape):
                raise GraphError(
                    f"the input {name} of {self.path} takes {shape}, the other graph {list(frames[0][name].shape)}"
                )
            held = self._held[name]
            made[name] = array.reshape(held) if None not in held else array  # type: ignore[arg-type]
        return made

    def run(self, feeds: Feeds, names: Sequence[str] | None = None) -> dict[str, Array]:
        """Outputs by name under their logical shapes, for inputs as `feeds` gives them.

        Raises:
            ModelError: the run failed.
        """
        names = list(self.names if names is None else names)
        try:
            found = self._session.run(names, feeds, ARENA.run_options())
        except Exception as error:
            raise ModelError(f"{self.path} failed while running ({error})") from error
        return {
            name: array.reshape(self.lowered.get(name, array.shape)) for name, array in zip(names, found, strict=True)
        }

    def batched(self, inputs: Signature) -> tuple[int, frozenset[str]]:
        """How many frames of a graph with these inputs one run takes, and in which inputs.

        Raises:
            GraphError: inputs take different numbers of frames.
        """
        counts = {}
        for name, port in inputs.items():
            first = (self.shapes.get(name) or [None])[0]
            if first is not None and port.shape and first % max(1, port.shape[0]) == 0 and first > port.shape[0]:
                counts[name] = first // port.shape[0]
        if len(set(counts.values())) > 1:
            raise GraphError(f"inputs of {self.path} take different numbers of frames: {counts}")
        return max(counts.values(), default=1), frozenset(counts)

    def run_frames(self, frames: Sequence[Feeds], names: Sequence[str] | None = None) -> dict[str, Array]:
        """Outputs of all frames, joined: of one run where the graph takes them together, else of one a frame."""
        rows = [self.run(feeds, names) for feeds in self.runs(frames)]
        return {
            name: np.concatenate([row[name] for row in rows]) if len(rows) > 1 else rows[0][name] for name in rows[0]
        }

    def runs(self, frames: Sequence[Feeds]) -> list[Feeds]:
        """The inputs of each run that it takes to make all frames."""
        single = all(_fits(frames[0][name].shape, shape) for name, shape in self.shapes.items() if name in frames[0])
        return [self.feeds([frame]) for frame in frames] if single else [self.feeds(frames)]


def _lengths(shape: Sequence[Any]) -> list[int | None]:
    return [length if isinstance(length, int) else None for length in shape]


def _fits(shape: Sequence[int], wanted: Sequence[int | None]) -> bool:
    return len(shape) == len(wanted) and all(b in (None, a) for a, b in zip(shape, wanted, strict=True))
