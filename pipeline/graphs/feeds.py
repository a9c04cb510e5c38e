"""Fixed, seeded inputs on which graphs are compared, in named kinds.

A *scheme* makes them for any graph that it fits, told by the names and shapes of the graph's inputs:

- `keypoints`: the graph has the generator's inputs `kp_driving` and `kp_source`, [N, K, 3] each. Kinds near, typical,
  far and out (of the volume), see `standins.MOTIONS`; inputs of rank 5 are feature volumes, others normal.
- `normal`: any graph. Kinds small, unit and large: normal numbers of standard deviation 0.1, 1 and 10; integers
  are 0 or 1, which every index and count accepts.

`choose` takes the first that fits. Inputs of one's own come from .npz files (`read`), one kind a file.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx_ir as ir
from numpy.typing import NDArray

from ..errors import GraphError
from .lower.rank import SHAPES_KEY
from .model import static_shape
from .standins.keypoints import MOTIONS, moved_points, rough_volume

Array = NDArray[np.generic]
Feeds = dict[str, Array]
"""Inputs of one run, by name."""

MAGNITUDES: Mapping[str, float] = {"small": 0.1, "unit": 1.0, "large": 10.0}

DRIVING, SOURCE = "kp_driving", "kp_source"


@dataclass(frozen=True)
class Port:
    """Shape and type of an input."""

    shape: tuple[int, ...]
    dtype: np.dtype[np.generic]


Signature = Mapping[str, Port]
"""A graph's inputs, by name."""


@dataclass(frozen=True)
class Scheme:
    """A way to make inputs."""

    name: str
    kinds: tuple[str, ...]
    fits: Callable[[Signature], bool]
    make: Callable[[Signature, str, int, int], list[Feeds]]
    """Signature, kind, seed, number of frames: the inputs of each frame."""


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


def choose(inputs: Signature, name: str | None = None) -> Scheme:
    """The scheme of that name, or the first that fits.

    Raises:
        GraphError: there is none of that name, or it does not fit.
    """
    if name is None:
        return next(scheme for scheme in SCHEMES.values() if scheme.fits(inputs))
    if name not in SCHEMES:
        raise GraphError(f"there is no scheme of inputs {name!r}; choose one of {', '.join(SCHEMES)}")
    if not SCHEMES[name].fits(inputs):
        raise GraphError(f"the scheme {name} does not fit the inputs {', '.join(inputs)}; choose another")
    return SCHEMES[name]


def make_feeds(
    scheme: Scheme, inputs: Signature, *, seed: int = 0, frames: int = 1, batched: Set[str] = frozenset()
) -> dict[str, list[Feeds]]:
    """Inputs by kind, one `Feeds` a frame; frames differ in the `batched` inputs alone."""
    made = {kind: scheme.make(inputs, kind, seed, frames) for kind in scheme.kinds}
    return {
        kind: [{name: array if name in batched else rows[0][name] for name, array in row.items()} for row in rows]
        for kind, rows in made.items()
    }


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


def _normal(inputs: Signature, kind: str, seed: int, frames: int) -> list[Feeds]:
    ports = list(enumerate(inputs.items()))
    return [
        {name: _random(port, MAGNITUDES[kind], [seed, frame, index]) for index, (name, port) in ports}
        for frame in range(frames)
    ]


def _random(port: Port, magnitude: float, seed: Sequence[int]) -> Array:
    random = np.random.Generator(np.random.PCG64(list(seed)))
    if port.dtype.kind in "biu":
        return random.integers(0, 2, port.shape).astype(port.dtype)
    return (magnitude * random.standard_normal(port.shape)).astype(port.dtype)


def _has_keypoints(inputs: Signature) -> bool:
    if not {DRIVING, SOURCE} <= inputs.keys():
        return False
    driving, source = inputs[DRIVING].shape, inputs[SOURCE].shape
    return len(driving) == len(source) == 3 and driving[1:] == source[1:] and driving[-1] == 3


def _keypoints(inputs: Signature, kind: str, seed: int, frames: int) -> list[Feeds]:
    rows, count, _ = inputs[DRIVING].shape
    driving, source = moved_points(count, kind, seed, batch=rows * frames)
    made = []
    for frame in range(frames):
        feeds: Feeds = {}
        for index, (name, port) in enumerate(inputs.items()):
            if name == DRIVING:
                array: Array = driving[frame * rows : (frame + 1) * rows]
            elif name == SOURCE:
                array = source[: port.shape[0]]
            elif len(port.shape) == 5:
                channels, depth, height, width = port.shape[1:]
                array = np.repeat(rough_volume((channels, depth, height, width), seed), port.shape[0], 0)
            else:
                array = _random(port, 1.0, [seed, frame, index])
            feeds[name] = array.astype(port.dtype)
        made.append(feeds)
    return made


SCHEMES: dict[str, Scheme] = {
    scheme.name: scheme
    for scheme in (
        Scheme("keypoints", tuple(MOTIONS), _has_keypoints, _keypoints),
        Scheme("normal", tuple(MAGNITUDES), lambda inputs: True, _normal),
    )
}
"""In the order in which they are tried."""
