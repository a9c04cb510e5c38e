"""What the stages hand to one another, in the order of the data's path.

Every value holds numpy arrays and JSON-able values only, so a stage can run
in another process. Arrays are not changed after they were handed on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from .errors import Box

F32 = NDArray[np.float32]
U8 = NDArray[np.uint8]


@dataclass(frozen=True)
class Sound:
    """The voice as the models hear it.

    `samples`: [n] float32, mono, about -1..1, not normalised.
    `duration`: seconds of the recording itself (n / sample_rate may differ by a sample).
    """

    samples: F32
    sample_rate: int
    duration: float


@dataclass(frozen=True)
class Soundtrack:
    """The original sound, encoded once for the film: Opus packets of a 48 kHz stream.

    `data`: [bytes] uint8, all packets end to end; `sizes`: [packets] int64, bytes of each.
    `pts`, `durations`: [packets] int64, presentation timestamps and lengths in samples of 48 kHz
    (the first pts is minus the encoder's delay).
    `header`: the codec's extradata (OpusHead); `channels`: 1 or 2.
    """

    data: U8
    sizes: NDArray[np.int64]
    pts: NDArray[np.int64]
    durations: NDArray[np.int64]
    header: bytes
    channels: int
    sample_rate: int = 48000


@dataclass(frozen=True)
class Crop:
    """Where the square that the networks see lies in a picture.

    `matrix`: [2, 3] float64, crop coordinates (x, y in -1..1 across the crop's edges) to picture
    pixels, where (0, 0) is the picture's top left corner (not the first pixel's centre).
    """

    matrix: NDArray[np.float64]

    def scaled(self, factor_x: float, factor_y: float) -> Crop:
        """The same square in the picture resized by these factors."""
        return Crop(self.matrix * np.array([[factor_x], [factor_y]]))


@dataclass(frozen=True)
class Portrait:
    """The picture and the face in it.

    `picture`: [H, W, 3] uint8 RGB, even sides, at most `max_side` long: what the film shows around the crop.
    `pixels`: [S, S, 3] uint8 RGB, the crop sampled from the stored picture at full resolution.
    `landmarks`: [478, 3] float32 in crop units (x, y in -1..1 across the crop's edges, y down; z in the
    same unit, smaller = nearer the viewer).
    `crop`: the crop's place in `picture`.
    `stored_size`: (width, height) of the stored picture, upright. `face_box`: the face in it.
    """

    picture: U8
    pixels: U8
    landmarks: F32
    crop: Crop
    stored_size: tuple[int, int]
    face_box: Box

    @property
    def shrunk(self) -> bool:
        """Whether the film shows the picture smaller than it was stored (a lost odd row does not count)."""
        height, width = self.picture.shape[:2]
        return self.stored_size[0] - width > 1 or self.stored_size[1] - height > 1


@dataclass(frozen=True)
class Motion:
    """How the person moves: a row a frame at `fps` (25 for the models known today).

    `expression`: [M, E] float32; E coefficients of the source's basis, or 3 K keypoint offsets.
    `scale`: [M]; `translation`: [M, 3] crop units; `angles`: [M, 3] degrees: pitch, yaw, roll.
    """

    expression: F32
    scale: F32
    translation: F32
    angles: F32
    fps: float

    def __len__(self) -> int:
        return len(self.scale)


@dataclass(frozen=True)
class Source:
    """Source keypoints and what is this person's own (LivePortrait).

    `keypoints`: [K, 3] x_s = scale * (kp @ R + exp), with t_x and t_y added to x and y.
    `kp`: [K, 3] canonical keypoints; `rotation`: [3, 3]; `scale`: 1; `translation`: [3];
    `expression`: [K, 3] offsets in the canonical frame.
    `basis`: [E, K, 3] expression basis fitted to this face, or None where the motion holds offsets.
    `closed_mouth`: [K, 3] canonical offset that closes the mouth at rest, or None.
    `lip_closing`: [K, 3] what closes it as an offset of driving keypoints, added after stitching, or None.
    """

    keypoints: F32
    kp: F32
    rotation: F32
    scale: float
    translation: F32
    expression: F32
    basis: F32 | None = None
    closed_mouth: F32 | None = None
    lip_closing: F32 | None = None


@dataclass(frozen=True)
class Appearance:
    """Appearance features, once a portrait: `features` by the generator's input roles, and the source.

    Features have the types in which the pack stores them; `stages.generator.fixed_inputs` makes of them those which
    the generator takes.
    """

    features: Mapping[str, NDArray[np.generic]]
    source: Source


@dataclass(frozen=True)
class KeyFrame:
    """One key frame after the checks.

    `index`: frame number in the film; `image`: [S, S, 3] uint8 RGB; `keypoints`: [K, 3] that it shows.
    A carried-on frame shows the image and the keypoints of the last good one.
    """

    index: int
    image: U8
    keypoints: F32


@dataclass(frozen=True)
class Repair:
    """A key frame that was not good at once: `kind` is "rendered again" or "carried on"."""

    index: int
    kind: str
    reasons: tuple[str, ...] = field(default=())
