"""How large a stand-in is: as published, or as small as its tensors allow."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ...graphs.standins import FULL, Spec
from ...graphs.standins.transformer import BASE, TransformerSpec


@dataclass(frozen=True)
class Widths:
    """Widths of all networks; their tensors have the published shapes in any case.

    `extractor`: of the motion extractor's two hidden layers. `landmarks`: of the landmark network's.
    `stitching`: hidden layers of the stitching and the lip network.
    """

    generator: Spec
    speech: TransformerSpec
    extractor: tuple[int, int]
    landmarks: tuple[int, int]
    stitching: tuple[int, int, int] = (128, 128, 64)


PUBLISHED = Widths(FULL, BASE, extractor=(4096, 5650), landmarks=(4096, 5830))

# The volume and the picture keep their sizes, so only channels can shrink.
REDUCED = Widths(
    generator=replace(
        FULL,
        compressed_channels=1,
        hourglass_channels=1,
        mask_kernel=3,
        warped_channels=8,
        spade_channels=16,
        modulation_channels=4,
        encoder_channels=(4, 8, 8),
    ),
    speech=replace(
        BASE,
        convolution_channels=8,
        width=32,
        inner=32,
        heads=4,
        layers=1,
        denoiser_width=32,
        denoiser_inner=32,
        denoiser_heads=4,
        denoiser_layers=1,
    ),
    extractor=(16, 16),
    landmarks=(16, 16),
    stitching=(16, 16, 16),
)
