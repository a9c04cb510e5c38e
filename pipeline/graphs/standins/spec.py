"""Widths and sizes of the stand-in networks."""

from __future__ import annotations

from dataclasses import dataclass, replace

# The hourglass halves height and width at each of its levels.
HOURGLASS_LEVELS = 5


@dataclass(frozen=True, kw_only=True)
class Spec:
    """Channel counts and sizes; the defaults are those of the published networks.

    Every spec gives the same operators in the same order; only `preview` leaves one node out.

    Raises:
        ValueError: `size` is no multiple of 32, so that the hourglass cannot halve it five times.
    """

    feature_channels: int = 32
    """Channels of `feature_3d`."""
    depth: int = 16
    """Depth slices of `feature_3d`."""
    size: int = 64
    """Height and width of `feature_3d` in pixels; the image has 8 times as many."""
    keypoints: int = 21
    """Keypoints a face."""
    compressed_channels: int = 4
    """Channels of the features that are sampled once a keypoint to find the motion."""
    hourglass_channels: int = 32
    """Channels of the hourglass's output; its level i has 2 ** (i + 1) times as many."""
    mask_kernel: int = 7
    """Side of the convolution that makes the mask; two fifths of the warping half's work at 7."""
    warped_channels: int = 256
    """Channels of the warped features handed from the warping half to the SPADE half."""
    spade_channels: int = 512
    """Channels of the middle blocks; the two upsampling blocks give a half and an eighth."""
    modulation_channels: int = 128
    """Hidden channels of each modulation."""
    encoder_channels: tuple[int, int, int] = (64, 128, 256)
    """Channels of the appearance network's first three convolutions."""
    preview: bool = False
    """Run the last block at half the size: an image of 4 times `size` (see graphs/half_size.py)."""

    def __post_init__(self) -> None:
        if self.size % 2**HOURGLASS_LEVELS:
            raise ValueError(f"size is {self.size}: give a multiple of {2**HOURGLASS_LEVELS} pixels")

    @property
    def image_size(self) -> int:
        """Height and width of the generator's image in pixels."""
        return self.size * (4 if self.preview else 8)

    @property
    def portrait_size(self) -> int:
        """Height and width of the appearance network's input in pixels."""
        return self.size * 4

    @property
    def volume(self) -> tuple[int, int, int]:
        """(D, H, W) of `feature_3d`."""
        return self.depth, self.size, self.size


FULL = Spec()
PREVIEW = replace(FULL, preview=True)
# 66 and 70 channels go into the two largest convolutions, as off the multiple of 4 as 110 and 142.
SMALL = Spec(
    feature_channels=4,
    depth=8,
    size=32,
    compressed_channels=2,
    hourglass_channels=4,
    warped_channels=32,
    spade_channels=64,
    modulation_channels=16,
    encoder_channels=(8, 16, 32),
)
