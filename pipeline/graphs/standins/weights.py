"""Where a stand-in's parameters come from."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from onnx import StringStringEntryProto, TensorProto

# Gains that keep the variance of what passes a convolution with centred filters: one over the standard
# deviation of the activation of a standard normal variable (Brock et al., 2021, arXiv 2101.08692, §4.1).
LINEAR = 1.0
RELU = (0.5 - 0.5 / np.pi) ** -0.5
LEAKY_RELU = (0.52 - 0.32 / np.pi) ** -0.5  # slope 0.2 below zero
LEAKY_RELU_001 = (0.50005 - 0.49005 / np.pi) ** -0.5  # slope 0.01


class WeightSource(Protocol):
    """Makes the parameters of a graph."""

    def tensor(self, name: str, shape: Sequence[int], std: float, mean: float, *, centred: bool) -> TensorProto:
        """A float32 initializer: normal values of the given `std` and `mean`.

        `centred` takes from each output's filter its own mean, so that what all inputs of a convolution have in
        common, as the positive mean that Relu leaves, does not pile up layer by layer.
        """
        ...


@dataclass(frozen=True)
class SeededWeights:
    """Random parameters; each has a stream of its own, chosen by `seed` and the parameter's name."""

    seed: int = 0

    def tensor(self, name: str, shape: Sequence[int], std: float, mean: float, *, centred: bool) -> TensorProto:
        key = int.from_bytes(hashlib.sha256(name.encode()).digest()[:16], "little")
        random = np.random.Generator(np.random.PCG64(np.random.SeedSequence([self.seed, key])))
        values = random.standard_normal(tuple(shape), dtype=np.float32)
        if centred:
            values -= values.mean(axis=tuple(range(1, values.ndim)), keepdims=True)
        values *= np.float32(std)
        if mean:
            values += np.float32(mean)
        return TensorProto(name=name, data_type=TensorProto.FLOAT, dims=shape, raw_data=values.tobytes())


@dataclass(frozen=True)
class AbsentWeights:
    """Parameters with a shape and no values: the structure of a graph at no cost; it cannot be run."""

    location: str = "absent.bin"

    def tensor(self, name: str, shape: Sequence[int], std: float, mean: float, *, centred: bool) -> TensorProto:
        return TensorProto(
            name=name,
            data_type=TensorProto.FLOAT,
            dims=shape,
            data_location=TensorProto.EXTERNAL,
            external_data=[StringStringEntryProto(key="location", value=self.location)],
        )
