"""What the code knows of the face models, read from the faces pack's manifest."""

from __future__ import annotations

from dataclasses import dataclass

from ..packs.section import Section


@dataclass(frozen=True)
class DetectorSpec:
    """An anchor-based detector that slides over a picture of any size (sides a multiple of the coarsest stride).

    `strides`, `anchors`: sides of the cells in pixels, finest first, and anchors a cell; anchors lie at the
    cells' centres. A row of the regressors is centre x, y (from the anchor), width, height, then points x, y
    (from the anchor), in pixels. `eyes`: the numbers of the right and the left eye among the points.
    `low`, `high`: the input's values for black and white. `threshold`: least logit of a candidate.
    `overlap`: candidates whose boxes share more of their union are one.
    `face_side`: the smallest face is shown to the model with this side, pixels.
    `least_search_side`: the smallest level of the pyramid is at most so long, pixels.
    `finest_pixels`: levels for faces too small to use are searched only up to so many pixels.
    `window`, `window_overlap`: sides of the tiles and of what neighbours share, pixels.
    """

    strides: tuple[int, ...]
    anchors: tuple[int, ...]
    eyes: tuple[int, ...]
    low: float
    high: float
    threshold: float
    overlap: float
    face_side: float
    least_search_side: int
    finest_pixels: int
    window: int
    window_overlap: int

    @classmethod
    def read(cls, section: Section) -> DetectorSpec:
        """Raises PackError: a field is missing or of the wrong kind."""
        return section.record(cls)


@dataclass(frozen=True)
class LandmarksSpec:
    """The landmark model and how it is asked again until its points rest.

    `points`: how many; `side`: of its square input, pixels; `low`, `high`: input for black and white.
    `margin`: side of the input square over the face's. `eye_corners`: the outer corners, right and left.
    `threshold`: least face logit. `settled`: the points rest when they move less than this part of the
    square's side on average. `passes`: at most so many.
    """

    points: int
    side: int
    low: float
    high: float
    margin: float
    eye_corners: tuple[int, ...]
    threshold: float
    settled: float
    passes: int

    @classmethod
    def read(cls, section: Section) -> LandmarksSpec:
        """Raises PackError: a field is missing or of the wrong kind."""
        return section.record(cls)


@dataclass(frozen=True)
class FaceSpec:
    """Both models, and what a usable face is.

    `outline`: landmarks of the face's outline from temple to temple and of the brows; a face's box is the
    upright square around them, its side times `box_factor`. `least_side`: of the box of a usable face, pixels of
    the stored picture. `cheeks`: the outermost landmarks, right and left; the line between them says how far
    the head is turned. `greatest_yaw`: degrees, of a usable face. `most_outside`: part of its landmarks that may
    lie beyond the picture's edges.
    """

    detector: DetectorSpec
    landmarks: LandmarksSpec
    outline: tuple[int, ...]
    box_factor: float
    least_side: int
    cheeks: tuple[int, ...]
    greatest_yaw: float
    most_outside: float

    @classmethod
    def read(cls, root: Section) -> FaceSpec:
        """Raises PackError: a field is missing or of the wrong kind."""
        return root.section("face").record(
            cls,
            detector=DetectorSpec.read(root.section("detector")),
            landmarks=LandmarksSpec.read(root.section("landmarks")),
        )
