"""Seeded inputs of the generator: keypoints from still to thrown out of the volume, and a feature volume."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from .spec import Spec

Array = NDArray[np.float32]


@dataclass(frozen=True)
class Motion:
    """How far the driving keypoints lie from the source's, in units of the grid (the volume spans -1..1)."""

    shift: float
    """Standard deviation of what all points of a face move together."""
    spread: float
    """Standard deviation of what each point moves besides."""


MOTIONS: Mapping[str, Motion] = MappingProxyType(
    {
        "near": Motion(0.002, 0.002),
        "typical": Motion(0.05, 0.03),
        "far": Motion(0.3, 0.2),
        "out": Motion(1.5, 0.8),  # most sparse samples leave the volume
    }
)


def moved_points(count: int, kind: str, seed: int = 0, *, batch: int = 1) -> tuple[Array, Array]:
    """Driving and source keypoints, [batch, count, 3] float32 each; one face, so all source rows are the same.

    Args:
        kind: a key of MOTIONS.

    Raises:
        KeyError: `kind` is none of them.
    """
    motion = MOTIONS[kind]
    random = np.random.Generator(np.random.PCG64([seed, 1]))
    source = random.uniform(-0.6, 0.6, (1, count, 3))
    moved = motion.shift * random.standard_normal((batch, 1, 3))
    moved = moved + motion.spread * random.standard_normal((batch, count, 3))
    return (source + moved).astype(np.float32), np.repeat(source, batch, 0).astype(np.float32)


def rough_volume(shape: tuple[int, int, int, int], seed: int = 0) -> Array:
    """[1, C, D, H, W] float32 of mean 0 and standard deviation 1, for a shape (C, D, H, W).

    Neighbours in height and width correlate by two thirds and slices not at all, as in what the appearance
    network makes of a portrait, where slices are channels of a 2-D convolution.
    """
    random = np.random.Generator(np.random.PCG64([seed, 2]))
    volume = random.standard_normal((1, *shape), dtype=np.float32)
    for axis in (3, 4):
        volume = volume + np.roll(volume, 1, axis) + 0.5 * np.roll(volume, 2, axis)
    return (volume - volume.mean()) / volume.std()


def keypoints(spec: Spec, kind: str, seed: int = 0, *, batch: int = 1) -> tuple[Array, Array]:
    """`moved_points` of a face of `spec`."""
    return moved_points(spec.keypoints, kind, seed, batch=batch)


def feature_volume(spec: Spec, seed: int = 0, *, batch: int = 1) -> Array:
    """`rough_volume` of the size of `spec`, [batch, C, D, H, W]; every row the same."""
    return np.repeat(rough_volume((spec.feature_channels, *spec.volume), seed), batch, 0)


def inputs(spec: Spec, kind: str, seed: int = 0, *, batch: int = 1) -> dict[str, Array]:
    """The generator's inputs by name: `batch` key frames of one portrait; arguments as of `keypoints`."""
    driving, source = keypoints(spec, kind, seed, batch=batch)
    return {"feature_3d": feature_volume(spec, seed, batch=batch), "kp_driving": driving, "kp_source": source}


def portrait(spec: Spec, seed: int = 0) -> Array:
    """The appearance network's `img`, [1, 3, 4 size, 4 size] float32 in 0..1: smooth patches of colour."""
    random = np.random.Generator(np.random.PCG64([seed, 3]))
    coarse = random.uniform(0, 1, (1, 3, spec.portrait_size // 8, spec.portrait_size // 8))
    image = coarse.repeat(8, 2).repeat(8, 3)
    for axis in (2, 3):
        image = np.mean([np.roll(image, offset, axis) for offset in range(-3, 4)], 0)
    return image.astype(np.float32)
