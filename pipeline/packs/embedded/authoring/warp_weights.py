"""Low-rank weights that turn keypoint displacements into displacements of the warp's nodes.

Two layers: the head (with the upper lip and the upper lids) and the jaw (with the lower lip and
the lower lids). Away from the slits both move by one common field. Eyeballs move with the jaw
layer's field, plus what their irises move beyond it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .anatomy import CHIN_PATCH, EYES, LIP_MIDDLE, POINTS, UPPER_INNER, indicator
from .expression_nodes import expression_nodes
from .head_motion import HeadMotion, Outline, depth_and_head_weight
from .motion_basis import PATH as MOTION_BASIS
from .regions import EyeRegion, MouthRegion
from .windows import CROP, NODES, SIZE, SLITS, STEP
from .writer import Graph, Value

JAW_FOLLOWS = {**dict.fromkeys(CHIN_PATCH, 0.2 / len(CHIN_PATCH)), **dict.fromkeys([14, 87, 317], 0.8 / 3)}
"""Landmarks whose expression the tongue and the lower teeth follow."""


@dataclass(frozen=True)
class WarpWeights:
    head: Value
    """[16384, 4 + rank] weights of every node for the head layer."""
    jaw: Value
    """[nodes of SLITS, 4 + rank] the same for the jaw layer."""
    keypoints: Value
    """[4 + rank, 478] from keypoint displacements to the factors of the two above."""
    mouth: Value
    """[6, 478] displacement of three corners of the crop for the upper teeth, then for the jaw."""
    gaze: Value
    """[2, 478] displacement of each iris beyond that of the lids around it."""


def _slit_share(g: Graph, mouth: MouthRegion, eyes: list[EyeRegion], up: float) -> Value:
    """[nodes of SLITS, 1] 1 near mouth and eyes, where a layer moves by its own field, 0 away from them."""
    positions = SLITS.node_positions()
    x, y = g.constant(positions[:, 0:1]), g.constant(positions[:, 1:2])
    share = 1 - g.smoothstep((mouth.zone(x, y, up) - 0.74) / 0.26)
    for eye in eyes:
        share = g.maximum(share, 1 - g.smoothstep((eye.zone(x, y) - 0.72) / 0.28))
    return share


def warp_weights(g: Graph, points: Value, mouth: MouthRegion, eyes: list[EyeRegion]) -> WarpWeights:
    """The weights for a portrait's points [478, 3] in pixels."""
    outline = Outline(points)
    motion = HeadMotion(g, points)
    basis = g.constant(np.load(MOTION_BASIS))
    depth, reach = depth_and_head_weight(g, points, outline)
    of_head = motion.at(points[:, 0:2], points[:, 2:3])
    expression = basis - of_head @ (motion.keypoints @ basis)
    factors = basis.transpose(1, 0) - (basis.transpose(1, 0) @ of_head) @ motion.keypoints

    nodes = expression_nodes(g, points, expression, outline, mouth, eyes)
    everywhere, slits = CROP.node_positions(), SLITS.node_positions()
    (common,) = nodes.fields(g.constant(everywhere), len(everywhere), "common")
    head, jaw = nodes.fields(g.constant(slits), len(slits), "head", "jaw")
    rigid = motion.at(g.constant(everywhere), depth) * reach

    cells, rank = SLITS.over(STEP), int(np.load(MOTION_BASIS).shape[1])

    def in_slits(field: Value, width: int) -> Value:
        square = field.reshape(NODES, NODES, width)[cells.top : cells.bottom, cells.left : cells.right]
        return square.reshape(cells.height * cells.width, width)

    near = in_slits(common, rank)
    head_extra = (head - near) * _slit_share(g, mouth, eyes, up=1.0)
    top, left, bottom, right = cells.margins(CROP.over(STEP))
    padded = g.op("Pad", head_extra.reshape(cells.height, cells.width, rank),
                  np.array([top, left, 0, bottom, right, 0], np.int64))  # fmt: skip
    head_field = common + padded.reshape(NODES * NODES, rank)
    jaw_field = near + (jaw - near) * _slit_share(g, mouth, eyes, up=2.6)

    corners = g.constant(np.array([[-0.5, -0.5], [SIZE - 0.5, -0.5], [-0.5, SIZE - 0.5]], np.float32))
    teeth_depth = points[UPPER_INNER[LIP_MIDDLE], 2] + mouth.width * 0.02
    teeth = motion.at(corners, teeth_depth.reshape(1, 1).expand(3, 1)) @ motion.keypoints
    followed = np.zeros((1, POINTS), np.float32)
    for point, weight in JAW_FOLLOWS.items():
        followed[0, point] = weight
    jaw_expression = followed - (followed @ of_head) @ motion.keypoints
    irises = points.take([eye.iris[0] for eye in EYES])
    (around_iris,) = nodes.fields(irises[:, 0:2], len(EYES), "jaw")
    lids = motion.at(irises[:, 0:2], irises[:, 2:3]) @ motion.keypoints + around_iris @ factors
    own = np.stack([indicator(eye.iris) / len(eye.iris) for eye in EYES]).astype(np.float32)
    return WarpWeights(
        head=g.concat([rigid, head_field], axis=1),
        jaw=g.concat([in_slits(rigid, 4), jaw_field], axis=1),
        keypoints=g.concat([motion.keypoints, factors], axis=0),
        mouth=g.concat([teeth, teeth + jaw_expression], axis=0),
        gaze=own - lids,
    )
