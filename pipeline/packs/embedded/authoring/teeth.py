"""Rows of teeth on an arch, seen from the front. Lengths are in widths of the mouth."""

from __future__ import annotations

from dataclasses import dataclass

from .writer import Graph, Value


@dataclass(frozen=True)
class Arch:
    """One side of a row, from the middle outwards; the other is its mirror image."""

    ends: list[float]
    """Where each tooth ends, as it is seen: those at the side are foreshortened."""
    lengths: list[float]
    """Of each tooth's edge beyond the row's line (its crown points away from the row's own jaw)."""
    points: list[float]
    """How much each tooth's edge comes to a point."""
    crown: float
    """From edge to gum."""
    radius: float
    """Of the arch."""
    rise: float
    """How much higher in the picture the arch's far end stands, for a depth of one radius."""
    shade: float
    """Of the lip, on the part of a crown that is next to its gum."""


# Mean crown widths 8.5 6.6 7.6 7 6.8 and 5.3 5.9 6.9 7 7 mm on circles of 26 and 22 mm, in a mouth of 50 mm.
UPPER = Arch(
    ends=[0.165, 0.282, 0.396, 0.470, 0.505],
    lengths=[0.0, -0.010, -0.003, -0.012, -0.018],
    points=[0.1, 0.3, 1.0, 0.9, 0.8],
    crown=0.20, radius=0.53, rise=0.085, shade=0.14,
)  # fmt: skip
LOWER = Arch(
    ends=[0.102, 0.208, 0.314, 0.390, 0.425],
    lengths=[0.0, 0.002, 0.006, 0.0, -0.004],
    points=[0.1, 0.1, 0.8, 0.8, 0.8],
    crown=0.17, radius=0.46, rise=0.17, shade=0.36,
)  # fmt: skip


@dataclass(frozen=True)
class Row:
    """A row of teeth as images [h, w]."""

    alpha: Value
    """Coverage of teeth and gum."""
    gum: Value
    """Part of it that is gum."""
    light: Value
    """0..1: darker between the teeth and where the arch curves back."""


def row_of_teeth(g: Graph, arch: Arch, across: Value, down: Value, jaw: float, pixel: Value) -> Row:
    """The row at places `across` and `down` from the middle of its edges; `jaw` 1 for teeth that hang, -1 for others.

    `pixel`: the size of one, for soft edges.
    """
    step, far = g.smoothstep, across.abs()
    place, length, point, start = far * 0 + 1, far * 0, far * 0, 0.0
    for end, tooth_length, tooth_point in zip(arch.ends, arch.lengths, arch.points, strict=True):
        inside = g.op("And", g.op("GreaterOrEqual", far, start), far < end)
        place = g.where(inside, (far - (start + end) / 2) * (2 / (end - start)), place)
        length = g.where(inside, tooth_length, length)
        point = g.where(inside, tooth_point, point)
        start = end
    size = place * place
    depth = 1 - (1 - (far / arch.radius) * (far / arch.radius)).clip(0.02, 1).sqrt()
    # Corners are rounded, more so towards the side; a tooth with a point falls away from its middle.
    rounded = size * size * (0.007 + depth * 0.012) + place.abs() * point * 0.008
    beyond = (down + depth * arch.rise) * jaw - (length - rounded)
    alpha = step(beyond * -0.6 / pixel + 0.5) * step((arch.ends[-1] - far) / 0.05)
    gum = step((-beyond - arch.crown * (1 - depth * 0.3) + (1 - size) * 0.03) / 0.03)
    near_edge = step((beyond + 0.07) / 0.07)
    gap = (-(1 - place.abs()) / (pixel * 9)).exp() * (near_edge * 0.14 + 0.06)
    light = (1 - gap) * (1 - size * 0.10) * (1 - depth * 1.25).clip(0.12, 1)
    light = light * (1 - step((-beyond - 0.02) / 0.15) * arch.shade)
    return Row(alpha=alpha, gum=gum, light=light)
