"""Appearance graph: a portrait and its keypoints -> the layers and weights that the generator needs."""

from __future__ import annotations

import numpy as np

from .anatomy import POINTS
from .layers import skin_layers
from .motion_basis import RANK
from .mouth_interior import mouth_interior
from .regions import MouthRegion, eye_regions
from .warp_weights import warp_weights
from .windows import MOUTH, NODES, SIZE, SLITS, STEP
from .writer import Graph

DENSE = 2 * SIZE - 1
"""Side of the head's texture: a value at every pixel and half way between any two. Linear samples of it are as
sharp as cubic ones of the picture and take half the time, once for every frame."""

TENSORS: dict[str, list[int]] = {
    "head_color": [1, 3, DENSE, DENSE],
    "eye_color": [1, 3, SLITS.height, SLITS.width],
    "mouth_cover": [1, 1, SLITS.height, SLITS.width],
    "eye_cover": [1, 1, SLITS.height, SLITS.width],
    "jaw_color": [1, 3, SLITS.height, SLITS.width],
    "jaw_alpha": [1, 1, SLITS.height, SLITS.width],
    "teeth_layer": [1, 4, MOUTH.height, MOUTH.width],
    "cavity_layer": [1, 3, MOUTH.height, MOUTH.width],
    "head_weights": [NODES * NODES, 4 + RANK],
    "jaw_weights": [(SLITS.height // STEP) * (SLITS.width // STEP), 4 + RANK],
    "keypoint_weights": [4 + RANK, POINTS],
    "mouth_weights": [6, POINTS],
    "gaze_weights": [2, POINTS],
}
"""What passes from the appearance graph to the generators."""


def appearance_graph() -> Graph:
    """`image` [1, 3, 512, 512] RGB 0..1 and `kp_source` [1, 478, 3] in crop units -> TENSORS."""
    g = Graph("appearance")
    image = g.input("image", [1, 3, SIZE, SIZE])
    keypoints = g.input("kp_source", [1, POINTS, 3])
    points = (keypoints[0] + [1, 1, 0]) * (SIZE / 2) - [0.5, 0.5, 0]
    mouth, eyes = MouthRegion(g, points), eye_regions(g, points)
    weights = warp_weights(g, points, mouth, eyes)
    skin = skin_layers(g, image, mouth, eyes)
    interior = mouth_interior(g, image, points, mouth)
    values = {
        "head_color": g.op(
            "Resize",
            skin.head_color,
            "",
            "",
            np.array([1, 3, DENSE, DENSE]),
            mode="cubic",
            coordinate_transformation_mode="align_corners",
        ),
        "eye_color": skin.eyeballs,
        "mouth_cover": skin.mouth_cover,
        "eye_cover": skin.eye_cover,
        "jaw_color": skin.jaw_color,
        "jaw_alpha": skin.jaw_alpha,
        "teeth_layer": interior.teeth,
        "cavity_layer": interior.cavity,
        "head_weights": weights.head,
        "jaw_weights": weights.jaw,
        "keypoint_weights": weights.keypoints,
        "mouth_weights": weights.mouth,
        "gaze_weights": weights.gaze,
    }
    for name, shape in TENSORS.items():
        g.output(name, values[name], shape)
    return g
