from __future__ import annotations

import numpy as np
import pytest

from pipeline.faces.detector import Candidate, anchor_centers, shared, suppress, usual_scales
from pipeline.faces.finder import FaceFinder


def candidate(x: float, y: float, side: float, score: float) -> Candidate:
    return Candidate(np.array([x, y]), side, 0.0, score)


def test_anchors_of_the_trained_size(face_finder: FaceFinder) -> None:
    """896 anchors: 16 x 16 cells of two, then 8 x 8 of six, at cell centres."""
    anchors = anchor_centers(128, 128, face_finder.spec.detector)
    assert anchors.shape == (896, 2)
    assert anchors[:4].tolist() == [[4, 4], [4, 4], [12, 4], [12, 4]]
    assert anchors[512:519].tolist() == [[8, 8]] * 6 + [[24, 8]]
    assert anchors[-1].tolist() == [120, 120]


@pytest.mark.parametrize(("height", "width"), [(32, 32), (256, 512), (48, 496)])
def test_anchors_fit_the_model_at_any_size(face_finder: FaceFinder, height: int, width: int) -> None:
    answer = face_finder.detector.run({"image": np.zeros((1, height, width, 3), np.float32)})
    count = len(anchor_centers(height, width, face_finder.spec.detector))
    assert answer["boxes"].shape == (1, count, 16)
    assert answer["scores"].shape == (1, count, 1)


def test_shared() -> None:
    a = candidate(0, 0, 10, 1)
    assert shared(a, a) == 1
    assert shared(a, candidate(5, 0, 10, 1)) == pytest.approx(50 / 150)
    assert shared(a, candidate(1, 1, 2, 1)) == pytest.approx(4 / 100)
    assert shared(a, candidate(11, 0, 10, 1)) == 0


def test_the_best_of_overlapping_candidates_stays() -> None:
    best, beside, other = candidate(0, 0, 10, 3), candidate(1, 1, 11, 2), candidate(40, 0, 10, 1)
    assert suppress([other, beside, best], 0.3) == [best, other]


@pytest.mark.parametrize("size", [(6000, 4000), (512, 512), (70, 64)])
def test_scales_show_every_face_in_the_models_range(face_finder: FaceFinder, size: tuple[int, int]) -> None:
    scales = usual_scales(*size, face_finder.spec.detector, 64)
    for side in np.linspace(64, max(64, min(size)), 200):
        assert any(20 <= side * scale <= 110 for scale in scales)
    assert len(scales) <= 8
