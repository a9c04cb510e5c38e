"""Sizes of the trained networks; training builds them in torch, authoring writes them as graphs."""

from __future__ import annotations

from dataclasses import dataclass

from .visemes import CLASSES


@dataclass(frozen=True)
class Stack:
    """Residual blocks: channels, kernel, groups of the deep convolution, a dilation for each block.

    whole: a block normalises over channels and time together, else over the channels of each moment.
    conditions: size of the vector that modulates each block, 0 = none.
    """

    width: int
    kernel: int
    groups: int
    dilations: tuple[int, ...]
    whole: bool
    conditions: int = 0


ENCODER = Stack(224, 5, 4, (1, 2, 4, 8, 1, 2, 4, 8, 1, 2), whole=True)
LIPS = Stack(160, 5, 4, (1, 2, 4, 1, 2, 4), whole=False)
LIFE = Stack(128, 5, 4, (1, 2, 4, 8, 1, 2, 4, 8), whole=False, conditions=64)

NORM_EPSILON = 1e-5

LATENTS = 19
"""Features that training found a use for, and nobody gave a name."""

LOUDNESS, PITCH, HEARD, LATENT = 26, 27, 28, 29
"""Columns of the audio features. Before them: shares of the classes in the first 20 ms of a frame, then in the second.
`HEARD` is 1; 0 marks what the null features and the start are: nothing."""

AUDIO_SIZE = LATENT + LATENTS
assert len(CLASSES) * 2 == LOUDNESS

SCALE, TRANSLATE_X, TRANSLATE_Y, PITCH_ANGLE, YAW, ROLL = 52, 53, 54, 56, 57, 58
BLINK_DRIVE, GAZE_X_DRIVE, GAZE_Y_DRIVE, BROW_DRIVE = 59, 60, 61, 62
MOTION_SIZE = 63

LIFE_COLUMNS = (PITCH_ANGLE, YAW, ROLL, TRANSLATE_X, TRANSLATE_Y, SCALE, GAZE_X_DRIVE, GAZE_Y_DRIVE, BROW_DRIVE,
                BLINK_DRIVE)  # fmt: skip
"""Columns of the motion vector that the diffusion makes, in the order of the network's channels."""

LIFE_CONDITIONS = 4
"""Loudness, pitch, share of speech, heard."""
