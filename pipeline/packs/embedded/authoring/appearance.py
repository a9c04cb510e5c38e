"""Appearance graph: a portrait and its keypoints -> the layers and weights that the generator needs."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from onnx import TensorProto

from .anatomy import POINTS
from .background_fill import HALF
from .eye_layers import eye_layers, irises_as_colour, lashes_as_colour
from .layers import skin_layers
from .lid_curves import COLUMNS, LID_POINTS
from .matte import matte
from .mouth_interior import mouth_interior
from .regions import MouthRegion, eye_regions
from .sampling import dense, densified
from .smile_fold import POOL, fold_fill
from .warp_fields import kept_in_steps
from .warp_weights import FACTORS, OF_COMMON, OF_HEAD, OF_JAW, OF_RIGID, warp_weights
from .windows import COARSE_STEP, CROP, EYE, MOUTH, SIZE, SLITS
from .writer import Graph, Value


class Stored(Enum):
    """How a tensor is kept: its element type in ONNX. The generators take all of them as float32."""

    BYTE = TensorProto.UINT8
    """Whole levels 0..255: colours and coverage, as fine as the photo itself; weights in steps (kept_in_steps of
    warp_fields.py), right to a 250th of the motion."""
    WEIGHT = TensorProto.FLOAT16
    """Weights of displacements: right to a 2000th of the motion."""
    EXACT = TensorProto.FLOAT
    """What is small, and what would be seen to be rounded."""


class Tensor(NamedTuple):
    """One tensor's shape, and how it is kept."""

    shape: list[int]
    stored: Stored


TENSORS: dict[str, Tensor] = {
    "head_color": Tensor([1, 3, dense(SIZE), dense(SIZE)], Stored.BYTE),
    "alpha": Tensor([1, 1, HALF, HALF], Stored.BYTE),
    "background": Tensor([1, 3, SIZE, SIZE], Stored.BYTE),
    "upper_lip": Tensor([1, 2, MOUTH.height, MOUTH.width], Stored.BYTE),
    "fold_fill": Tensor([1, 3, MOUTH.height // POOL, MOUTH.width // POOL], Stored.BYTE),
    "jaw_layer": Tensor([1, 5, dense(MOUTH.height), dense(MOUTH.width)], Stored.BYTE),
    "teeth_layer": Tensor([1, 5, MOUTH.height, MOUTH.width], Stored.BYTE),
    "cavity_layer": Tensor([1, 7, MOUTH.height, MOUTH.width], Stored.BYTE),
    "crop_rigid": Tensor([CROP.nodes(COARSE_STEP), OF_RIGID], Stored.WEIGHT),
    "crop_weights": Tensor([CROP.nodes(COARSE_STEP), OF_COMMON - OF_RIGID], Stored.BYTE),
    "crop_steps": Tensor([1, OF_COMMON - OF_RIGID], Stored.EXACT),
    "head_weights": Tensor([SLITS.nodes(), OF_HEAD], Stored.WEIGHT),
    "jaw_weights": Tensor([MOUTH.nodes(), OF_JAW - OF_RIGID], Stored.BYTE),
    "jaw_steps": Tensor([1, OF_JAW - OF_RIGID], Stored.EXACT),
    "keypoint_weights": Tensor([FACTORS, POINTS], Stored.EXACT),
    "mouth_weights": Tensor([6, POINTS], Stored.EXACT),
    "eye_still": Tensor([2, 8, EYE.height, EYE.width], Stored.BYTE),
    "eye_lashes": Tensor([2, 3, dense(EYE.height), dense(EYE.width)], Stored.BYTE),
    "eye_irises": Tensor([2, 4, dense(EYE.height), dense(EYE.width)], Stored.BYTE),
    "eye_frames": Tensor([2, 4, 2], Stored.EXACT),
    "lid_edges": Tensor([2, 2, COLUMNS], Stored.EXACT),
    "lid_motion": Tensor([2, 2, COLUMNS, 7], Stored.EXACT),
    "lash_line": Tensor([2, 2, COLUMNS], Stored.EXACT),
    "lid_weights": Tensor([len(LID_POINTS), POINTS], Stored.EXACT),
    "gaze_weights": Tensor([2, POINTS], Stored.EXACT),
}
"""What passes from the appearance graph to the generators."""


def appearance_graph() -> Graph:
    """`image` [1, 3, 512, 512] RGB 0..1 and `kp_source` [1, 478, 3] in crop units -> TENSORS."""
    g = Graph("appearance")
    image = g.input("image", [1, 3, SIZE, SIZE])
    keypoints = g.input("kp_source", [1, POINTS, 3])
    points = (keypoints[0] + [1, 1, 0]) * (SIZE / 2) - [0.5, 0.5, 0]
    mouth, eyes = MouthRegion(g, points), eye_regions(g, points)
    behind = matte(g, image, points)
    weights = warp_weights(g, points, mouth, behind.found)
    skin = skin_layers(g, image, mouth)
    eye = eye_layers(g, image, points, eyes)
    interior = mouth_interior(g, image, points, mouth)
    crop_weights, crop_steps = kept_in_steps(weights.crop)
    jaw_weights, jaw_steps = kept_in_steps(weights.jaw)
    values = {
        "head_color": densified(behind.person(skin.head_color), 1, 3, SIZE, SIZE),
        "alpha": behind.alpha,
        "background": behind.background,
        "upper_lip": skin.upper_lip,
        "fold_fill": fold_fill(g, image, points, mouth) * 0.5 + 128 / 255,
        "jaw_layer": densified(skin.jaw, 1, 5, MOUTH.height, MOUTH.width),
        "teeth_layer": interior.teeth,
        "cavity_layer": interior.cavity,
        "crop_rigid": weights.crop_rigid,
        "crop_weights": crop_weights,
        "crop_steps": crop_steps,
        "head_weights": weights.head,
        "jaw_weights": jaw_weights,
        "jaw_steps": jaw_steps,
        "keypoint_weights": weights.keypoints,
        "mouth_weights": weights.mouth,
        "eye_still": eye.still,
        "eye_lashes": lashes_as_colour(densified(eye.lashes, 2, 3, EYE.height, EYE.width)),
        "eye_irises": irises_as_colour(densified(eye.irises, 2, 4, EYE.height, EYE.width)),
        "eye_frames": eye.frames,
        "lid_edges": eye.edges,
        "lid_motion": eye.motion,
        "lash_line": eye.lash_line,
        "lid_weights": weights.lids,
        "gaze_weights": weights.gaze,
    }
    for name, (shape, stored) in TENSORS.items():
        g.output(name, _kept(values[name], stored), shape, stored.value)
    return g


def _kept(value: Value, stored: Stored) -> Value:
    if stored is Stored.BYTE:
        value = value.graph.op("Round", value.clip(0, 1) * 255)
    return value if stored is Stored.EXACT else value.cast(stored.value)
