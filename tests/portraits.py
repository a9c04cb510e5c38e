"""Portraits in tests: made of anything, and compared."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from pipeline.faces.crop import CropSpec
from pipeline.faces.finder import FaceFinder
from pipeline.stages.portrait import prepare_portrait
from pipeline.values import Portrait

from .pictures import encode

U8 = NDArray[np.uint8]


class Prepare:
    """prepare_portrait for pixels, bytes or a path."""

    def __init__(self, finder: FaceFinder, spec: CropSpec) -> None:
        self.finder, self.spec = finder, spec

    def __call__(self, source: U8 | bytes | Path, **options: object) -> Portrait:
        if isinstance(source, np.ndarray):
            source = encode(Image.fromarray(source), "BMP")
        opened = source if isinstance(source, Path) else io.BytesIO(source)
        return prepare_portrait(opened, self.finder, self.spec, **options)


def assert_same_face(portrait: Portrait, sample: Portrait, tolerance: float = 0.02) -> None:
    """The landmarks lie in the crop as the sample's do; 0.02 crop units are 5 of 512 pixels."""
    assert np.abs(portrait.landmarks[:, :2] - sample.landmarks[:, :2]).mean() < tolerance
