"""Fixed, seeded inputs on which graphs are compared, in named kinds.

A *scheme* makes them for any graph that it fits, told by the names and shapes of the graph's inputs:

- `keypoints`: the graph has the generator's inputs `kp_driving` and `kp_source`, [N, K, 3] each. Kinds near, typical,
  far and out (of the volume), see `standins.MOTIONS`; inputs of rank 5 are feature volumes, others normal.
- `normal`: any graph. Kinds small, unit and large: normal numbers of standard deviation 0.1, 1 and 10; integers
  are 0 or 1, which every index and count accepts.

`Inputs` names a scheme, or .npz files of inputs of one's own, one kind a file.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..errors import GraphError
from .feeds import Array, Feeds, Port, Signature, read
from .standins.keypoints import MOTIONS, moved_points, rough_volume

MAGNITUDES: Mapping[str, float] = {"small": 0.1, "unit": 1.0, "large": 10.0}

DRIVING, SOURCE = "kp_driving", "kp_source"


@dataclass(frozen=True)
class Scheme:
    """A way to make inputs."""

    name: str
    kinds: tuple[str, ...]
    telling: tuple[str, ...]
    """Those that show most faults, where each run takes long."""
    fits: Callable[[Signature], bool]
    make: Callable[[Signature, str, int, int], list[Feeds]]
    """Signature, kind, seed, number of frames: the inputs of each frame."""


@dataclass(frozen=True)
class Inputs:
    """What graphs are compared on."""

    scheme: str | None = None
    """None: the first that fits."""
    seed: int = 0
    kinds: Sequence[str] = ()
    """Some of the scheme's; none for all."""
    files: Sequence[Path] = ()
    """.npz files, instead of a scheme."""
    few: bool = False
    """Of the scheme's kinds only the telling ones."""

    def make(
        self, ports: Signature, *, frames: int = 1, batched: Set[str] = frozenset()
    ) -> tuple[str, dict[str, list[Feeds]]]:
        """The scheme's name, and by kind the inputs of each frame; frames differ in the `batched` inputs alone.

        Raises:
            GraphError: no such scheme or kind, it does not fit, or a file is not right for the graph.
        """
        if self.files:
            name, feeds = "files", read(self.files, ports)
        else:
            scheme = choose(ports, self.scheme)
            name, feeds = scheme.name, _made(scheme, ports, self.seed, frames, batched)
            if self.few:
                feeds = {kind: feeds[kind] for kind in scheme.telling}
        if unknown := set(self.kinds) - feeds.keys():
            raise GraphError(f"no inputs of the kind {', '.join(sorted(unknown))}; choose of {', '.join(feeds)}")
        return name, {kind: rows for kind, rows in feeds.items() if kind in self.kinds or not self.kinds}


DEFAULT_INPUTS = Inputs()


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


def _made(scheme: Scheme, inputs: Signature, seed: int, frames: int, batched: Set[str]) -> dict[str, list[Feeds]]:
    found = {}
    for kind in scheme.kinds:
        rows = scheme.make(inputs, kind, seed, frames)
        found[kind] = [{n: array if n in batched else rows[0][n] for n, array in row.items()} for row in rows]
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
        Scheme("keypoints", tuple(MOTIONS), ("typical", "out"), _has_keypoints, _keypoints),
        Scheme("normal", tuple(MAGNITUDES), ("unit", "large"), lambda inputs: True, _normal),
    )
}
"""In the order in which they are tried."""
