"""What a head wears and holds, as places on the mesh: hair roots, masks for colour, teeth, lashes, glasses."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from .heads import BaseMesh

F64 = NDArray[np.float64]

# Hairline: height above the chin in parts of the face's height, over the angle from the front, degrees.
_ANGLES = [0, 25, 42, 55, 66, 80, 100, 118, 140, 180]
_HEIGHTS = [0.99, 0.98, 0.93, 0.86, 0.64, 0.58, 0.70, 0.34, 0.20, 0.14]


class Anatomy:
    """`points` [V, 3]: the posed mesh; `neutral`: the same face at rest."""

    def __init__(self, base: BaseMesh, neutral: F64, points: F64, seed: int) -> None:
        self.base, self.neutral, self.points = base, neutral, points
        self.random = np.random.default_rng(seed)
        scale = np.ptp(neutral[base.landmarks], axis=0) / np.ptp(base.vertices[base.landmarks], axis=0)
        own = np.load(Path(__file__).parents[3] / "pipeline/packs/embedded/authoring/data/expression_basis.npz")
        rest = own["neutral"].astype(np.float64) - base.vertices[base.landmarks]
        self.marks: F64 = points[base.landmarks] + rest * scale
        self.chin, self.top = self.marks[152, 1], self.marks[10, 1]
        self.height = self.top - self.chin
        self.size = self.height / 1.535
        ears = (self.marks[234] + self.marks[454]) / 2
        self.skull: F64 = np.array([0.0, self.chin + 0.82 * self.height, ears[2] - 0.1 * self.size])
        self.triangles, self.corner_uv = self._skin_triangles()

    def _skin_triangles(self) -> tuple[NDArray[np.int64], F64]:
        quads = np.array(self.base.faces["body"])
        uv = self.base.uv[np.array(self.base.texture_faces["body"])]
        keep = self.points[quads][:, :, 1].min(1) > self.chin - 0.6 * self.size
        quads, uv = quads[keep], uv[keep]
        halves = [[0, 1, 2], [0, 2, 3]]
        return np.concatenate([quads[:, h] for h in halves]), np.concatenate([uv[:, h] for h in halves])

    def mask(self, name: str, uv: F64) -> F64:
        """Value 0..1 of a mask texture at uv [N, 2]."""
        with Image.open(self.base.folder / "mpfb2" / "textures" / f"mpfb_{name}.jpg") as opened:
            picture = np.asarray(opened.convert("L"), np.float64) / 255
        side = picture.shape[0]
        x, y = np.clip((uv * [1, -1] + [0, 1]) * side, 0, side - 1).astype(int).T
        return picture[y, x]

    def scatter(self, count: int) -> tuple[F64, F64]:
        """Random places on head and neck, even by area: points and uv."""
        corners = self.points[self.triangles]
        area = np.linalg.norm(np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]), axis=1)
        chosen = self.random.choice(len(area), count, p=area / area.sum())
        a, b = np.sqrt(self.random.random(count)), self.random.random(count)
        parts = np.stack([1 - a, a * (1 - b), a * b], 1)[:, :, None]
        return (corners[chosen] * parts).sum(1), (self.corner_uv[chosen] * parts).sum(1)

    def hairline(self, points: F64, raised: float = 0.0) -> F64:
        """How far points lie above the hairline, in face heights; `raised` bares the temples and forehead."""
        place = points - self.skull
        angle = np.degrees(np.arctan2(np.abs(place[:, 0]), place[:, 2]))
        line = np.interp(angle, _ANGLES, np.array(_HEIGHTS) + raised * np.array([0.8, 1, 1, 0.9, 0.1, 0, 0, 0, 0, 0]))
        return (points[:, 1] - self.chin) / self.height - line

    def scalp(self, count: int, raised: float = 0.0, crown: float = 0.0) -> F64:
        """[N, 3] roots of the head's hair. `crown`: bald spot's radius (face heights)."""
        points, uv = self.scatter(count * 4)
        above = self.hairline(points, raised) + (0.012 + 0.1 * raised) * self.random.normal(size=len(points))
        bare = np.linalg.norm(points - [0, points[:, 1].max(), self.skull[2]], axis=1) < crown * self.height
        chosen = (above > 0) & (self.mask("ears", uv) < 0.3) & ~bare
        return points[chosen][:count]

    def beard(self, count: int, moustache: bool = True, chin_only: bool = False, lip_only: bool = False) -> F64:
        """[N, 3] roots of a beard: jaw, chin, upper lip; not lips nor cheeks."""
        points, uv = self.scatter(count * 6)
        middle, half = self.lips()
        x, y = np.abs(points[:, 0]) / half, (points[:, 1] - middle) / half
        cheek = np.interp(x, [0, 0.9, 1.3, 1.9, 2.6], [0.9, 0.75, 0.2, 0.2, 1.7])
        low = np.interp(x, [0, 1.5, 2.6], [-2.1, -1.7, -0.6])
        soft = 0.06 * self.random.normal(size=len(points))
        chosen = (y < cheek + soft) & (y > low + soft) & (points[:, 2] > self.skull[2] + 0.05 * self.height)
        chosen &= (self.mask("lips", uv) < 0.2) & (self.mask("inside-mouth", uv) < 0.2)
        inner = (x < 1.0) & (y > -0.6) & (y < 0.5)
        chosen &= ~inner
        # Bare patches beside the lower lip.
        chosen &= ~((x > 0.25) & (x < 0.95) & (y > -0.95) & (y < 0))
        if not moustache:
            chosen &= ~((y > 0) & (x < 1.25))
        if lip_only:
            chosen &= (y > 0) & (x < 1.15)
        if chin_only:
            chosen &= x < 1.25
        return points[chosen][:count]

    def lips(self) -> tuple[float, float]:
        """Height of the lips' middle and half of their width, from the mask on the mesh at rest."""
        faces = np.array(self.base.faces["body"])
        uv = np.zeros((len(self.points), 2))
        uv[faces.ravel()] = self.base.uv[np.array(self.base.texture_faces["body"]).ravel()]
        lips = self.neutral[self.mask("lips", uv) > 0.5]
        low, high = lips.min(0), lips.max(0)
        return float(low[1] + high[1]) / 2, float(high[0] - low[0]) / 2

    def brows(self, count: int, thickness: float) -> F64:
        """[N, 3] roots of both brows, on the ridge over the eyes (the basis' own brow points lie on a bare mesh)."""
        roots = []
        for side, sign in (("l", 1), ("r", -1)):
            eye, radius = self.eye(side)
            along = self.random.random(count // 2)
            x = np.interp(along, [0, 1], [abs(eye[0]) - 1.25 * radius, abs(eye[0]) + 1.75 * radius])
            y = eye[1] + radius * np.interp(along, [0, 0.3, 0.65, 1], [1.15, 1.45, 1.62, 1.2])
            width = radius * np.interp(along, [0, 0.12, 0.5, 1], [0.16, 0.24, 0.2, 0.05]) * thickness
            y += self.random.normal(size=count // 2).clip(-1.5, 1.5) * width * 0.6
            lifted = self.points[self.base.landmarks[66], 1] - self.neutral[self.base.landmarks[66], 1]
            roots.append(np.stack([sign * x, y + lifted, np.full(count // 2, eye[2] + 1.8 * radius)], 1))
        return np.concatenate(roots)

    def lashes(self, count: int) -> F64:
        """[N, 4, 3] lashes of both eyes, upper and lower, from the mesh's strips."""
        strands = []
        for side in "lr":
            eye = self.eye(side)[0]
            for strip, longer in (("2", 1.0), ("1", 0.55)):
                ids = np.unique(
                    np.concatenate([np.array(f) for f in self.base.faces[f"helper-{side}-eyelashes-{strip}"]])
                )
                place = self.points[ids] - eye
                angle = np.arctan2(place[:, 1], place[:, 0] * (1 if side == "l" else -1))
                order = np.argsort(angle)
                ids, angle = ids[order], angle[order]
                away = self.points[ids][:, 2]
                bins = np.array_split(np.arange(len(ids)), 9)
                # A bin's third nearest to the lid, and the third farthest from it.
                ranked = [ids[b[np.argsort(away[b])]] for b in bins]
                roots = np.array([self.points[r[: max(1, len(r) // 3)]].mean(0) for r in ranked])
                tips = np.array([self.points[r[-max(1, len(r) // 3) :]].mean(0) for r in ranked])
                along = np.sort(self.random.random(count // 4)) * 8
                first = np.minimum(along.astype(int), 7)
                part = (along - first)[:, None]
                root = roots[first] * (1 - part) + roots[first + 1] * part
                tip = tips[first] * (1 - part) + tips[first + 1] * part
                tip = root + (tip - root) * longer * (0.8 + 0.4 * self.random.random((len(root), 1)))
                tip += 0.006 * self.random.normal(size=tip.shape)
                bow = np.array([0, -0.012 if strip == "2" else 0.006, 0.008])
                strands.append(
                    np.stack([root, root + 0.35 * (tip - root) + bow, root + 0.7 * (tip - root) + bow, tip], 1)
                )
        return np.concatenate(strands)

    def eye(self, side: str) -> tuple[F64, float]:
        """Centre and radius of an eyeball, `side` l or r."""
        ids = np.unique(np.concatenate([np.array(f) for f in self.base.faces[f"helper-{side}-eye"]]))
        points = self.neutral[ids]
        low, high = points.min(0), points.max(0)
        return (low + high) / 2 + [0, 0, 0], float((high - low)[:2].mean() / 2)

    def near(self, places: list[int], width: float) -> F64:
        """[V] Gaussian about landmarks, `width` in face heights."""
        spots = self.marks[places]
        squared = ((self.points[:, None] - spots[None]) ** 2).sum(2)
        return np.exp(-squared / (2 * (width * self.height) ** 2)).max(1)
