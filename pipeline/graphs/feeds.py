"""A graph's inputs: their shapes and types, and arrays for them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx_ir as ir
from numpy.typing import NDArray

from ..errors import GraphError
from .lower.rank import SHAPES_KEY
from .model import static_shape

Array = NDArray[np.generic]
Feeds = dict[str, Array]
"""Inputs of one run, by name."""


@dataclass(frozen=True)
class Port:
    """Shape and type of an input."""

    shape: tuple[int, ...]
    dtype: np.dtype[np.generic]


Signature = Mapping[str, Port]
"""A graph's inputs, by name."""


def signature(model: ir.Model) -> Signature:
    """The inputs of a prepared graph, under the shapes they had before it was lowered.

    Raises:
        GraphError: the shape or type of one is not known.
    """
    found = {}
    lowered: dict[str, list[int]] = json.loads(model.metadata_props.get(SHAPES_KEY, "{}"))
    for value in model.graph.inputs:
        if value.dtype is None or value.dtype == ir.DataType.STRING:
            raise GraphError(f"the input {value.name} has no type that numbers can be made for; state it in the graph")
        found[str(value.name)] = Port(tuple(lowered.get(str(value.name), static_shape(value))), value.dtype.numpy())
    return found


def read(paths: Sequence[Path], inputs: Signature) -> dict[str, list[Feeds]]:
    """Inputs from .npz files, each a kind named like its file.

    Raises:
        GraphError: a file is unreadable, lacks an input, or holds one of another shape.
    """
    found = {}
    for path in paths:
        try:
            with np.load(path) as stored:
                arrays = {name: stored[name] for name in stored.files}
        except (OSError, ValueError) as error:
            raise GraphError(f"{path} is not a .npz file of inputs ({error}); write it with numpy.savez") from error
        for name, port in inputs.items():
            if name not in arrays:
                raise GraphError(f"{path} lacks the input {name}; it holds {', '.join(arrays) or 'nothing'}")
            if arrays[name].shape != port.shape:
                raise GraphError(f"{path}: {name} has shape {arrays[name].shape}; the graph takes {port.shape}")
        found[path.stem] = [{name: arrays[name].astype(port.dtype) for name, port in inputs.items()}]
    return found
