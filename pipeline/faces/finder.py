"""Faces of a picture: candidates of the detector, each confirmed by the landmark model."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..errors import Box
from ..packs.pack import Pack
from ..runtime.ladder import Ladder
from ..runtime.models import Models
from ..runtime.session import Model
from ..values import U8
from .detector import Candidate, detect, finer_scales, shared, usual_scales
from .landmarks import F64, find_landmarks
from .sampling import square
from .spec import FaceSpec

# More candidates than any group photo has usable faces; the rest would only cost time.
_MOST_CANDIDATES = 64


@dataclass(frozen=True)
class Face:
    """One face. `points`: [478, 3] float64 in picture pixels. `score`: the landmark model's logit.

    Its box is the upright square around the face's outline (from temple to temple, forehead left out) and the
    brows, times the pack's factor: the square that the detector draws, but measured on settled landmarks, so
    that it does not depend on where tiles lie. `side` is that square's side, `box` its part in the picture.
    `yaw`: degrees, how far the head is turned to either side. `outside`: part of the points beyond the picture.
    """

    points: F64
    score: float
    center: F64
    side: float
    box: Box
    yaw: float
    outside: float


@dataclass(frozen=True)
class FaceFinder:
    """The two models with what the manifest says of them."""

    detector: Model
    landmarks: Model
    spec: FaceSpec

    @classmethod
    def open(cls, pack: Pack, ladder: Ladder) -> FaceFinder:
        """Load both models of a faces pack.

        Raises:
            PackError, ModelError, ProviderError, RuntimeMissingError: see Session.
        """
        models = Models(pack, ladder.options, ladder)
        return cls(models.get("detector"), models.get("landmarks"), FaceSpec.read(pack.manifest.root))

    def find(self, picture: U8) -> list[Face]:
        """Every upright face (up to about 45 degrees of tilt) whose box has `least_side` pixels or more; smaller
        ones as far as they are noticed, and looked for in particular where there is no other.

        Args:
            picture: [H, W, 3] uint8.

        Returns:
            Faces from left to right.
        """
        height, width = picture.shape[:2]
        spec, least = self.spec.detector, self.spec.least_side
        faces: list[Face] = []
        for scales in (usual_scales(width, height, spec, least), finer_scales(width, height, spec, least)):
            faces = faces or self._confirm(picture, detect(picture, self.detector, spec, scales))
        return sorted(faces, key=lambda face: (face.center[0], face.center[1]))

    def _confirm(self, picture: U8, candidates: list[Candidate]) -> list[Face]:
        faces: list[Face] = []
        for candidate in candidates[:_MOST_CANDIDATES]:
            start = square(candidate.center, candidate.side * self.spec.landmarks.margin, candidate.angle)
            found = find_landmarks(picture, self.landmarks, self.spec.landmarks, start)
            if found is None:
                continue
            face = self._face(picture, found.points, found.score)
            # Two candidates may settle on one face (an eye taken for a small face, say).
            if not any(self._same(face, other) for other in faces):
                faces.append(face)
        return faces

    def _face(self, picture: U8, points: F64, score: float) -> Face:
        outline = points[list(self.spec.outline), :2]
        low, high = outline.min(axis=0), outline.max(axis=0)
        side = float((high - low).max()) * self.spec.box_factor
        center: F64 = (low + high) / 2
        limit = np.array(picture.shape[1::-1])
        left, top = (int(v) for v in np.clip(np.round(center - side / 2), 0, limit))
        right, bottom = (int(v) for v in np.clip(np.round(center + side / 2), 0, limit))
        across = points[self.spec.cheeks[1]] - points[self.spec.cheeks[0]]
        yaw = float(np.degrees(np.arctan2(abs(across[2]), np.hypot(across[0], across[1]))))
        outside = float(((points[:, :2] < 0) | (points[:, :2] > limit)).any(axis=1).mean())
        return Face(points, score, center, side, (left, top, right, bottom), yaw, outside)

    def _same(self, a: Face, b: Face) -> bool:
        squares = [Candidate(face.center, face.side, 0.0, face.score) for face in (a, b)]
        return shared(*squares) > self.spec.detector.overlap
