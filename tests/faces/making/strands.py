"""Strands of hair: grown from roots along a combed field, kept off the skin, and made into thin tubes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

F64 = NDArray[np.float64]
Nearest = Callable[[F64], tuple[F64, F64]]
"""Points [N, 3] -> the nearest points of the skin and their outward normals."""


@dataclass(frozen=True)
class Growth:
    """How one patch of hair grows; lengths in decimetres."""

    length: float
    comb: str
    """back, down, aside, forward, up, out, brow."""
    steps: int = 10
    lift: float = 0.3
    """Part of the first direction along the skin's normal."""
    gravity: float = 0.0
    curl: float = 0.0
    """Amplitude of coils, as a part of the step."""
    wave: float = 0.15
    """Shared by neighbouring strands."""
    layer: float = 0.1
    """Greatest thickness of the cover."""
    radius: float = 0.0022
    uneven: float = 0.25


def grow(roots: F64, normals: F64, head: F64, size: float, growth: Growth, nearest: Nearest, seed: int) -> F64:
    """[N, steps + 1, 3] points of strands, root first. `head`: centre of the skull; `size`: of the head."""
    random = np.random.default_rng(seed)
    n = len(roots)
    direction = _combed(roots - head, growth.comb)
    direction -= normals * (direction * normals).sum(1, keepdims=True)
    direction = _unit(direction) * (1 - growth.lift) + normals * growth.lift
    direction = _unit(direction + 0.12 * random.normal(size=(n, 3)))
    lengths = growth.length * (1 - growth.uneven * random.random(n))
    step = (lengths / growth.steps)[:, None]
    depth = growth.layer * random.random(n)[:, None] ** 1.5
    phase = random.random(n) * 2 * np.pi
    waves = [(random.normal(size=3) * 4, random.normal(size=3), random.random() * 6) for _ in range(4)]
    points = [roots]
    for k in range(growth.steps):
        here = points[-1]
        swing = sum((np.sin(here @ f + p)[:, None] * a for f, a, p in waves), np.zeros((n, 3)))
        direction = _unit(direction + growth.gravity * np.array([0, -1.0, 0]) + growth.wave * 0.3 * swing)
        angle = phase + 2.2 * k
        side = _unit(np.cross(direction, normals) + 1e-6)
        coil = np.cos(angle)[:, None] * side + np.sin(angle)[:, None] * np.cross(side, direction)
        moved = here + step * _unit(direction + growth.curl * coil)
        skin, out = nearest(moved)
        above = ((moved - skin) * out).sum(1, keepdims=True)
        wanted = depth * min(1.0, (k + 1) / 3)
        lifted = moved + out * np.maximum(wanted - above, 0)
        if growth.comb not in ("up", "out"):
            # Combed hair lies on the head: it is drawn down to its layer, not only pushed up to it.
            lifted = np.where(above > wanted, lifted - 0.25 * out * np.minimum(above - wanted, step), lifted)
        direction = _unit(0.5 * direction + 0.5 * _unit(lifted - here))
        points.append(_off_the_face(lifted, head, size) if growth.length > size else lifted)
    return np.stack(points, 1)


def _off_the_face(points: F64, head: F64, size: float) -> F64:
    """Moves what would hang before the face and the neck to their sides."""
    x, y, z = ((points - head) / size).T
    half = np.where(y < -0.62, 0.52, 0.56 * np.sqrt(np.clip(1 - ((y + 0.62) / 1.02) ** 2, 0, 1)))
    front = np.where(y < -0.62, -0.25, 0.15)
    inside = (z > front) & (np.abs(x) < half)
    sides = np.where(x < 0, -1.0, 1.0)
    part = np.clip((z - front) / 0.35, 0, 1)
    moved = points.copy()
    moved[:, 0] = np.where(inside, head[0] + size * sides * (np.abs(x) * (1 - part) + half * part), points[:, 0])
    return moved


def _combed(place: F64, comb: str) -> F64:
    x, y, z = place.T
    one, none = np.ones_like(x), np.zeros_like(x)
    fields = {
        "back": (0.5 * x, 0.25 * one, -1.2 * one),
        "down": (1.5 * x, -0.9 * one, 0.9 * z),
        "aside": (np.where(x > 0.22, 1.0, -1.0), -0.3 * one, -0.45 * one),
        "forward": (0.3 * x, -0.3 * one, 1.0 * one),
        "up": (0.2 * x, one, 0.2 * one),
        "out": (x, y, z),
        "brow": (np.sign(x), 0.55 - 0.9 * np.abs(x), none),
        "beard": (0.4 * x, -one, 0.3 * one),
    }
    return _unit(np.stack(fields[comb], 1))


def _unit(v: F64) -> F64:
    return v / np.maximum(np.linalg.norm(v, axis=-1, keepdims=True), 1e-9)


def tubes(strands: F64, radius: float, sides: int = 3) -> tuple[F64, NDArray[np.int64]]:
    """Vertices [V, 3] and quads [F, 4] of tubes that taper to their tips."""
    n, points, _ = strands.shape
    along = _unit(np.gradient(strands, axis=1))
    across = _unit(np.cross(along, np.array([0.31, 0.23, 0.92])))
    other = np.cross(along, across)
    turns = np.arange(sides) * 2 * np.pi / sides
    width = radius * np.sqrt(np.linspace(1, 0.06, points))[None, :, None, None]
    ring = (
        across[:, :, None] * np.cos(turns)[None, None, :, None] + other[:, :, None] * np.sin(turns)[None, None, :, None]
    )
    vertices = (strands[:, :, None] + width * ring).reshape(-1, 3)
    index = np.arange(n * points * sides).reshape(n, points, sides)
    next_side = np.roll(index, -1, axis=2)
    quads = np.stack([index[:, :-1], next_side[:, :-1], next_side[:, 1:], index[:, 1:]], -1).reshape(-1, 4)
    return vertices, quads
