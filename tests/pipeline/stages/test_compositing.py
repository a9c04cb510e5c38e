from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from pipeline.errors import PackError
from pipeline.faces.crop import CropSpec
from pipeline.faces.finder import FaceFinder
from pipeline.faces.sampling import square
from pipeline.packs.section import Section
from pipeline.stages.compositing import Compositor, SeamSpec
from pipeline.stages.portrait import prepare_portrait
from pipeline.values import Portrait
from tests.pictures import textured

U8 = NDArray[np.uint8]
SEAM = SeamSpec(512, 9, 503)


def portrait(picture: U8, x: float, y: float, side: float, degrees: float = 0.0) -> Portrait:
    crop = square(np.array([x, y]), side, np.radians(degrees))
    pixels = np.zeros((512, 512, 3), np.uint8)
    return Portrait(picture, pixels, np.zeros((478, 3), np.float32), crop, picture.shape[1::-1], (0, 0, 1, 1))


def flat(value: int, height: int = 300, width: int = 400) -> U8:
    return np.full((height, width, 3), value, np.uint8)


def psnr(a: U8, b: U8) -> float:
    return float(10 * np.log10(255**2 / np.mean((a.astype(float) - b) ** 2)))


def test_the_packs_seam_is_read(embedded_manifest: Section) -> None:
    assert SeamSpec.read(embedded_manifest.section("compositing")) == SEAM


@pytest.mark.parametrize("data", [{"size": 512, "inner": [9]}, {"size": 512}, {"inner": [9, 503]}])
def test_a_damaged_seam_is_named(data: dict[str, object]) -> None:
    with pytest.raises(PackError, match=r"compositing\.(inner|size) must be"):
        SeamSpec.read(Section(data, "compositing"))


def test_crop_frame_is_the_image() -> None:
    compositor = Compositor(portrait(flat(0), 200, 150, 100), 256, SEAM, "crop")
    image = textured(256, 256)
    assert compositor.output_size == (256, 256)
    assert (compositor.compose(image) == image).all()


@pytest.mark.parametrize("size", [256, 512])
@pytest.mark.parametrize(
    ("x", "y", "side", "degrees"),
    [
        (200, 150, 100, 0),
        (201.3, 149.6, 211.7, 12),
        (40, 30, 220, -20),
        (390, 290, 300, 33),
        (200, 150, 900, 5),
        (50, 50, 7, 45),
    ],
)
def test_outside_of_the_crop_nothing_changes(size: int, x: float, y: float, side: float, degrees: float) -> None:
    picture = textured(400, 300)
    before = picture.copy()
    compositor = Compositor(portrait(picture, x, y, side, degrees), size, SEAM)
    result = compositor.compose(255 - textured(size, size, seed=1))
    assert compositor.output_size == (400, 300)
    assert result.shape == picture.shape
    rows, columns = np.mgrid[:300, :400] + 0.5
    c, s = np.cos(np.radians(degrees)), np.sin(np.radians(degrees))
    u, v = (columns - x) * c + (rows - y) * s, (rows - y) * c - (columns - x) * s
    outside = np.maximum(abs(u), abs(v)) > side / 2
    assert (result[outside] == picture[outside]).all()
    assert (result[~outside] != picture[~outside]).any()
    assert (picture == before).all()  # the portrait itself is not written to


@pytest.mark.parametrize("size", [256, 512])
@pytest.mark.parametrize("value", [0, 255])
@pytest.mark.parametrize("degrees", [0, 3, 45])
@pytest.mark.parametrize("side", [5.3, 31.4, 211.0, 640.0])
def test_no_fringe_where_image_and_portrait_agree(size: int, value: int, degrees: float, side: float) -> None:
    compositor = Compositor(portrait(flat(value), 190.3, 151.7, side, degrees), size, SEAM)
    assert (compositor.compose(flat(value, size, size)) == value).all()


def test_mask_is_one_inside_and_falls_to_nothing_at_the_edge() -> None:
    compositor = Compositor(portrait(flat(0, 600, 600), 300, 300, 512), 512, SEAM)
    line = compositor.compose(flat(255, 512, 512))[300, :, 0].astype(int)
    left = line[44 : 44 + 10]  # the crop's left edge is at 44
    assert left[0] < 5
    assert (np.diff(left) >= 0).all()
    assert np.diff(left).max() < 50
    assert (line[44 + 9 : 44 + 503] == 255).all()
    assert line[:44].max() == line[556:].max() == 0
    # 9..503 of 0..512: the same ramp at both ends
    assert (line[::-1][44 : 44 + 10] == left).all()


def test_a_small_turned_seam_has_no_steps() -> None:
    """The seam is under a pixel wide; its mask is a mean over each pixel, so the edge is antialiased."""
    result = Compositor(portrait(flat(0), 200, 150, 40, 10), 512, SEAM).compose(flat(255, 512, 512))[..., 0]
    assert abs(result.sum() / 255 - (40 * (512 - 9) / 512) ** 2) < 0.02 * 1600  # ramps count half
    top = result[125:140, 195:207].astype(float).sum(axis=0)  # the height of the top edge, column by column
    steps = np.diff(top) / 255
    assert np.abs(steps + np.tan(np.radians(10))).max() < 0.15 or np.abs(steps - np.tan(np.radians(10))).max() < 0.15


def test_still_image_gives_a_still_frame() -> None:
    compositor = Compositor(portrait(textured(400, 300), 201.3, 149.6, 211.7, 12), 512, SEAM)
    image, other = textured(512, 512, seed=1), textured(512, 512, seed=2)
    first = compositor.compose(image)
    compositor.compose(other)
    again = Compositor(portrait(textured(400, 300), 201.3, 149.6, 211.7, 12), 512, SEAM).compose(image)
    assert (compositor.compose(image) == first).all()
    assert (again == first).all()


def test_border_does_not_follow_what_moves_inside() -> None:
    compositor = Compositor(portrait(textured(400, 300), 200, 150, 200, 7), 512, SEAM)
    image = textured(512, 512, seed=1)
    moved = image.copy()
    moved[150:360, 150:360] = 255 - moved[150:360, 150:360]
    changed = (compositor.compose(image) != compositor.compose(moved)).any(axis=-1)
    rows, columns = np.nonzero(changed)
    assert np.hypot(rows - 150, columns - 200).max() < 200 * 0.3 * 1.42


def test_shrunken_image_does_not_shimmer() -> None:
    """Stripes finer than the picture can show come out as their mean, wherever they stand."""
    compositor = Compositor(portrait(flat(128), 200, 150, 128, 3), 512, SEAM)
    stripes = np.zeros((512, 512, 3), np.uint8)
    stripes[:, ::2] = 255
    middles = [compositor.compose(np.roll(stripes, shift, axis=1))[110:190, 160:240].astype(int) for shift in (0, 1)]
    assert np.abs(middles[0] - 127.5).max() < 10
    assert np.abs(middles[0] - middles[1]).max() < 10


def test_crop_that_covers_the_picture() -> None:
    result = Compositor(portrait(flat(0), 200, 150, 1000), 256, SEAM).compose(flat(200, 256, 256))
    assert (result == 200).all()


@pytest.mark.parametrize(("max_side", "least"), [(1280, 39.0), (256, 38.0)])
def test_untouched_crop_gives_the_portrait_back(
    face_finder: FaceFinder, crop_spec: CropSpec, sample_portrait_path: Path, max_side: int, least: float
) -> None:
    sample = prepare_portrait(sample_portrait_path, face_finder, crop_spec, max_side=max_side)
    result = Compositor(sample, crop_spec.size, SEAM).compose(sample.pixels)
    changed = (result != sample.picture).any(axis=-1)
    rows, columns = np.nonzero(changed)
    region = slice(rows.min(), rows.max() + 1), slice(columns.min(), columns.max() + 1)
    assert psnr(result[region], sample.picture[region]) > least
    means = [p[region].astype(float).mean(axis=(0, 1)) for p in (result, sample.picture)]
    assert np.abs(means[0] - means[1]).max() < 0.5  # no shift of tone that would show as a seam
