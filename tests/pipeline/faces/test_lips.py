from __future__ import annotations

import numpy as np
import pytest

from pipeline.errors import PackError
from pipeline.faces.lips import LipSpec, lip_ratio
from pipeline.packs.section import Section
from pipeline.values import Portrait

SPEC = LipSpec(inner=(13, 14), corners=(61, 291), open_from=0.03)


def landmarks(gap: float) -> np.ndarray:
    """A mouth 0.5 wide, turned by 30 degrees, its lips `gap` apart."""
    points = np.zeros((478, 3), np.float32)
    points[[13, 14, 61, 291], :2] = [(0, -gap / 2), (0, gap / 2), (-0.25, 0.1), (0.25, 0.1)]
    c, s = np.cos(np.pi / 6), np.sin(np.pi / 6)
    points[:, :2] = points[:, :2] @ np.array([[c, -s], [s, c]])
    points[14, 2] = 0.3
    return points


@pytest.mark.parametrize("gap", [0, 0.015, 0.2])
def test_the_ratio_is_of_gap_and_width(gap: float) -> None:
    assert lip_ratio(landmarks(gap), SPEC) == pytest.approx(gap / 0.5, abs=1e-6)


def test_the_sample_portrait_smiles_with_open_lips(sample: Portrait) -> None:
    assert 0.1 < lip_ratio(sample.landmarks, SPEC) < 0.2


def test_two_numbers_a_pair() -> None:
    with pytest.raises(PackError, match=r"lips\.inner must be two landmark numbers"):
        LipSpec.read(Section({"inner": [13], "corners": [61, 291], "open_from": 0.03}, "lips"))
