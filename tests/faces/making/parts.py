"""Solid parts made of numbers: eyeballs, teeth, glasses. Each [V, 3] vertices and faces, in decimetres."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

F64 = NDArray[np.float64]
Mesh = tuple[F64, list[list[int]]]

# Widths of the teeth of one half, from the middle, and heights of upper and lower ones (decimetres).
WIDTHS = [0.084, 0.066, 0.074, 0.070, 0.068, 0.09, 0.09]
UPPER = [0.104, 0.092, 0.100, 0.082, 0.076, 0.07, 0.07]
LOWER = [0.084, 0.086, 0.094, 0.082, 0.076, 0.07, 0.07]
IRIS = 0.46
"""Iris radius in parts of the eyeball's."""


def merged(meshes: list[Mesh]) -> Mesh:
    vertices, faces, start = [], [], 0
    for points, polygons in meshes:
        vertices.append(points)
        faces += [[i + start for i in polygon] for polygon in polygons]
        start += len(points)
    return np.concatenate(vertices), faces


def grid(rows: int, columns: int, *, closed: bool) -> list[list[int]]:
    """Quads of a grid of points whose columns may close to a ring."""
    faces = []
    for r in range(rows - 1):
        for c in range(columns if closed else columns - 1):
            d = (c + 1) % columns
            faces.append([r * columns + c, r * columns + d, (r + 1) * columns + d, (r + 1) * columns + c])
    return faces


def eyeball(radius: float) -> Mesh:
    """About the origin, looking along +z, with the cornea's bulge."""
    polar = np.concatenate([np.linspace(0.001, 0.7, 28), np.linspace(0.75, np.pi - 0.01, 20)])
    around = np.linspace(0, 2 * np.pi, 48, endpoint=False)
    flat = np.sin(polar)
    bulge = 1 + 0.045 * np.clip(1 - (flat / (IRIS * 1.1)) ** 2, 0, None) * (polar < 1)
    ring = (radius * bulge * flat)[:, None] * np.ones_like(around)
    depth = (radius * bulge * np.cos(polar))[:, None] * np.ones_like(around)
    points = np.stack([ring * np.cos(around), ring * np.sin(around), depth], -1).reshape(-1, 3)
    return points, grid(len(polar), len(around), closed=True)


def tooth(width: float, height: float, depth: float, lower: bool) -> Mesh:
    """A rounded block about the origin: x across, y up, z outward; narrower at the gum."""
    polar = np.linspace(0.02, np.pi - 0.02, 14)
    around = np.linspace(0, 2 * np.pi, 24, endpoint=False)

    def power(v: F64, p: float) -> F64:
        return np.sign(v) * np.abs(v) ** p

    p, a = np.meshgrid(polar, around, indexing="ij")
    x = power(np.sin(p), 0.35) * power(np.cos(a), 0.5) * width / 2
    z = power(np.sin(p), 0.45) * power(np.sin(a), 0.8) * depth / 2
    y = power(np.cos(p), 0.7) * height / 2
    toward_gum = (y / height + 0.5) if not lower else (0.5 - y / height)
    x = x * (1 - 0.22 * toward_gum**2)
    z = z * (0.75 + 0.35 * toward_gum) + 0.006 * np.sin(np.pi * toward_gum)
    return np.stack([x, y, z], -1).reshape(-1, 3), grid(len(polar), len(around), closed=True)


def row(arch: F64, heights: list[float], size: float, lower: bool, random: np.random.Generator) -> Mesh:
    """Teeth along an arch. `arch` [n, 3]: from the middle to one side, at the teeth's biting edge."""
    lengths = np.r_[0, np.cumsum(np.linalg.norm(np.diff(arch[:, [0, 2]], axis=0), axis=1))]
    meshes, place = [], 0.0
    for width, height in zip(WIDTHS, heights, strict=True):
        w, h = width * size * (0.72 if lower and place < 0.12 else 1.0), height * size
        middle = place + w / 2
        place += w * 1.005
        if place > lengths[-1]:
            break
        center = np.array([np.interp(middle, lengths, arch[:, k]) for k in range(3)])
        ahead = np.array([np.interp(middle + 0.02, lengths, arch[:, k]) for k in range(3)])
        across = ahead - center
        angle = np.arctan2(-across[2], across[0])
        points, faces = tooth(w, h, 0.06 * size, lower)
        points[:, 1] += (h / 2 if not lower else -h / 2) + 0.004 * random.normal() * size
        c, s = np.cos(angle + 0.03 * random.normal()), np.sin(angle)
        turned = np.stack(
            [points[:, 0] * c - (-points[:, 2]) * s, points[:, 1], -points[:, 0] * s + points[:, 2] * c], 1
        )
        for mirror in (1, -1):
            copy = (turned + center) * [mirror, 1, 1]
            meshes.append((copy, faces if mirror == 1 else [f[::-1] for f in faces]))
    return merged(meshes)


def gum(arch: F64, rise: float, size: float) -> Mesh:
    """A soft band behind and beyond the teeth's necks."""
    line = np.concatenate([arch[::-1] * [-1, 1, 1], arch[1:]])
    around = np.linspace(0, 2 * np.pi, 12, endpoint=False)
    out = np.stack([line[:, 0], np.zeros(len(line)), line[:, 2] - line[:, 2].min()], 1)
    out /= np.maximum(np.linalg.norm(out, axis=1, keepdims=True), 1e-6)
    ring = out[:, None] * (0.038 * size * np.cos(around))[None, :, None]
    ring = ring + np.array([0, 1.0, 0]) * (0.06 * size * np.sin(around))[None, :, None]
    points = (line[:, None] + [0, rise * size, 0] - 0.012 * size * out[:, None] + ring).reshape(-1, 3)
    return points, grid(len(line), 12, closed=True)


def rod(line: F64, radius: float, closed: bool = False) -> Mesh:
    """A round rod along points [n, 3]."""
    if closed:
        along = np.roll(line, -1, 0) - np.roll(line, 1, 0)
    else:
        along = np.gradient(line, axis=0)
    along /= np.linalg.norm(along, axis=1, keepdims=True)
    side = np.cross(along, [0.0, 0.1, 1.0])
    side /= np.maximum(np.linalg.norm(side, axis=1, keepdims=True), 1e-9)
    other = np.cross(along, side)
    turns = np.linspace(0, 2 * np.pi, 8, endpoint=False)
    ring = side[:, None] * np.cos(turns)[None, :, None] + other[:, None] * np.sin(turns)[None, :, None]
    points = (line[:, None] + radius * ring).reshape(-1, 3)
    faces = grid(len(line), 8, closed=True)
    if closed:
        last = (len(line) - 1) * 8
        faces += [[last + c, last + (c + 1) % 8, (c + 1) % 8, c] for c in range(8)]
    return points, faces


def glasses(eyes: F64, ears: F64, bridge: F64, size: float, roundness: float, thickness: float) -> tuple[Mesh, Mesh]:
    """Frame and lenses for eyes [2, 3], ear tops [2, 3] and the nose's bridge [3]."""
    frames: list[Mesh] = []
    lenses: list[Mesh] = []
    turns = np.linspace(0, 2 * np.pi, 48, endpoint=False)
    front = max(eyes[:, 2].max() + 0.24 * size, bridge[2] + 0.05 * size)
    for k in (0, 1):
        sign = np.sign(eyes[k, 0])
        width, height = (0.27, 0.25) if roundness > 0.9 else (0.29, 0.2)
        c, s = np.cos(turns), np.sin(turns)
        x = np.sign(c) * np.abs(c) ** roundness * width * size + eyes[k, 0] + sign * 0.02 * size
        y = np.sign(s) * np.abs(s) ** roundness * height * size + eyes[k, 1] - 0.03 * size
        z = front - 0.18 * (np.abs(x) - abs(eyes[k, 0])) ** 2 - 0.12 * np.clip(np.abs(x) - 0.3 * size, 0, None)
        rim = np.stack([x, y, z], 1)
        frames.append(rod(rim, thickness * size, closed=True))
        middle = rim.mean(0)
        rings = np.concatenate([middle + (rim - middle) * t for t in (1.0, 0.66, 0.33, 0.02)])
        lenses.append((rings, grid(4, 48, closed=True)))
        outer = rim[np.argmax(rim[:, 0] * sign)] + [0, 0.06 * size, 0]
        ear = ears[k] + [sign * 0.03 * size, 0.02 * size, 0]
        t = np.linspace(0, 1, 12)[:, None]
        bowed = outer * (1 - t) + ear * t + [sign * 0.05 * size, 0, 0] * np.sin(np.pi * t)
        frames.append(rod(bowed, thickness * size * 0.9))
    inner = [frames[2 * k][0].reshape(48, 8, 3).mean(1) for k in (0, 1)]
    # The bridge joins the innermost points of the rims' upper halves.
    ends = [
        r[np.argmin(np.abs(r[:, 0]) + np.where(r[:, 1] < e[1], 9.0, 0.0))] for r, e in zip(inner, eyes, strict=True)
    ]
    t = np.linspace(0, 1, 12)[:, None]
    bow = np.array([0, 0.05 * size, 0.03 * size]) * np.sin(np.pi * t)
    frames.append(rod(ends[0] * (1 - t) + ends[1] * t + bow, thickness * size))
    return merged(frames), merged(lenses)
