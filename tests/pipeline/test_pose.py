"""Head pose against vectors measured on the reference implementation."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from pipeline.packs.specs import PoseBins
from pipeline.pose import degrees_from_bins, rotation_matrix

GOLDEN = np.load(Path(__file__).parents[1] / "data/golden/geometry.npz")
BINS = PoseBins(step=3, offset=-97.5)


@pytest.mark.parametrize("angle", ["pitch", "yaw", "roll"])
def test_degrees_from_bins(angle: str) -> None:
    degrees = degrees_from_bins(GOLDEN[f"{angle}_logits"], BINS)
    np.testing.assert_allclose(degrees, GOLDEN[f"{angle}_degrees"], atol=1e-4)


def test_rotation_matrix() -> None:
    angles = np.stack([GOLDEN[f"{angle}_degrees"] for angle in ("pitch", "yaw", "roll")], 1)
    rotations = np.stack([rotation_matrix(row) for row in angles])
    np.testing.assert_allclose(rotations, GOLDEN["rotation"], atol=1e-5)
