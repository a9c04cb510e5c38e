"""Low-rank weights that turn keypoint displacements into displacements of the warp's nodes.

Two layers: the head (with the upper lip) and the jaw (with the lower lip). Away from the mouth both move by
one common field. Lids and irises are drawn by what they move beyond that field (eye_patches.py).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from .anatomy import CHIN_PATCH, EYES, LIP_MIDDLE, POINTS, UPPER_INNER
from .expression_nodes import COLUMNS, expression_nodes, expression_share
from .head_motion import HeadMotion, Outline, depth_and_head_weight
from .lid_curves import LID_POINTS, own_motion
from .motion_basis import OF_LOWER, OF_UPPER, RANK
from .motion_basis import PATH as MOTION_BASIS
from .regions import MouthRegion
from .windows import COARSE_STEP, CROP, MOUTH, SIZE, SLITS, STEP
from .writer import Graph, Value

JAW_FOLLOWS = {**dict.fromkeys(CHIN_PATCH, 0.54 / len(CHIN_PATCH)), **dict.fromkeys([14, 87, 317], 0.36 / 3)}
"""Landmarks whose expression the tongue and the lower teeth follow: more the chin than the lip before them, and both
not all the way, as skin goes further down than the jaw under it."""


OF_RIGID = 4
"""Factors of the head's affine motion."""

FACTORS = RANK + OF_RIGID
OF_COMMON, OF_HEAD, OF_JAW = FACTORS - OF_LOWER - OF_UPPER, FACTORS - OF_LOWER, FACTORS - OF_UPPER
"""Factors that each field follows: those of the lower lip's edge come first, those of the upper lip's edge last, those
that all follow between them."""


@dataclass(frozen=True)
class WarpWeights:
    crop_rigid: Value
    """[nodes of CROP at COARSE_STEP, OF_RIGID] weights of the nodes away from the slits for the head's motion."""
    crop: Value
    """[nodes of CROP at COARSE_STEP, OF_COMMON - OF_RIGID] the same for the expression."""
    head: Value
    """[nodes of SLITS, OF_HEAD] weights of the head layer: OF_RIGID for its motion, then the expression's."""
    jaw: Value
    """[nodes of MOUTH, OF_JAW - OF_RIGID] the expression's for the jaw layer; the head's motion is the head layer's."""
    keypoints: Value
    """[FACTORS, 478] from keypoint displacements to the factors of the three above."""
    mouth: Value
    """[6, 478] displacement of three corners of the crop for the upper teeth, then for the jaw."""
    lids: Value
    """[28, 478] displacement of each lid landmark beyond the field's there."""
    gaze: Value
    """[2, 478] the same of each iris."""


def _slit_share(g: Graph, mouth: MouthRegion, up: float) -> Value:
    """[nodes of SLITS, 1] 1 near the mouth, where a layer moves by its own field, 0 away from it."""
    positions = SLITS.node_positions()
    x, y = g.constant(positions[:, 0:1]), g.constant(positions[:, 1:2])
    return 1 - g.smoothstep((mouth.zone(x, y, up) - 0.70) / 0.30)


def _blend(g: Graph, common: Value, own: Value, share: Value, more: tuple[int, int]) -> Value:
    """A layer's own field, which has `more` columns before and after, and the common one where its share is 0."""
    wide = g.op("Pad", common, np.array([0, more[0], 0, more[1]], np.int64))
    return wide + (own - wide) * share


def in_mouth(field: Value, columns: int) -> Value:
    """[nodes of MOUTH, columns] of a field [nodes of SLITS, columns]."""
    all_cells, cells = SLITS.over(STEP), MOUTH.inside(SLITS).over(STEP)
    rows = field.reshape(all_cells.height, all_cells.width, columns)
    return rows[cells.top : cells.bottom, cells.left : cells.right].reshape(-1, columns)


def warp_weights(g: Graph, points: Value, mouth: MouthRegion, apart: Value) -> WarpWeights:
    """The weights for a portrait's points [478, 3] in pixels. `apart` []: 1 where the person stands apart from the
    background (matte.py)."""
    outline = Outline(points)
    motion = HeadMotion(g, points)
    basis = g.constant(np.load(MOTION_BASIS))
    of_head = motion.at(points[:, 0:2], points[:, 2:3])
    expression = basis - of_head @ (motion.keypoints @ basis)
    factors = basis.transpose(1, 0) - (basis.transpose(1, 0) @ of_head) @ motion.keypoints

    nodes = expression_nodes(g, points, expression, outline, mouth)
    everywhere, slits = CROP.node_positions(COARSE_STEP), SLITS.node_positions()
    (crop,) = nodes.fields(g.constant(everywhere), len(everywhere), "common")
    crop = crop * expression_share(g, outline, everywhere)
    common, head, jaw = nodes.fields(g.constant(slits), len(slits), "common", "head", "jaw")
    held = expression_share(g, outline, slits)
    head = _blend(g, common, head, _slit_share(g, mouth, up=1.0), (0, OF_UPPER)) * held
    jaw = _blend(g, common, jaw, _slit_share(g, mouth, up=2.6), (OF_LOWER, 0)) * held

    def rigid(targets: npt.NDArray[np.float32]) -> Value:
        depth, reach = depth_and_head_weight(g, points, outline, targets, apart)
        return motion.at(g.constant(targets), depth) * reach

    corners = g.constant(np.array([[-0.5, -0.5], [SIZE - 0.5, -0.5], [-0.5, SIZE - 0.5]], np.float32))
    teeth_depth = points[UPPER_INNER[LIP_MIDDLE], 2] + mouth.width * 0.02
    teeth = motion.at(corners, teeth_depth.reshape(1, 1).expand(3, 1)) @ motion.keypoints
    followed = np.zeros((1, POINTS), np.float32)
    for point, weight in JAW_FOLLOWS.items():
        followed[0, point] = weight
    jaw_expression = followed - (followed @ of_head) @ motion.keypoints
    # Lids and irises at the depth of the skin there: they shall not slide when the head turns.
    drawn = points.take([*LID_POINTS, *(eye.iris[0] for eye in EYES)])
    (around,) = nodes.fields(drawn[:, 0:2], len(LID_POINTS) + len(EYES), "common")
    field = motion.at(drawn[:, 0:2], drawn[:, 2:3]) @ motion.keypoints + around @ factors[COLUMNS["common"]]
    own = own_motion([*([point] for point in LID_POINTS), *(eye.iris for eye in EYES)]) - field
    return WarpWeights(
        crop_rigid=rigid(everywhere),
        crop=crop,
        head=g.concat([rigid(slits), head], axis=1),
        jaw=in_mouth(jaw, OF_JAW - OF_RIGID),
        keypoints=g.concat([factors[:OF_LOWER], motion.keypoints, factors[OF_LOWER:]], axis=0),
        mouth=g.concat([teeth, teeth + jaw_expression], axis=0),
        lids=own[: len(LID_POINTS)],
        gaze=own[len(LID_POINTS) :],
    )
