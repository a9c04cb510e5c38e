"""Portrait graph: the landmarks of a photo -> its head pose and its own expression units."""

from __future__ import annotations

import math

import numpy as np

from .anatomy import (
    CHEEKS,
    CHIN,
    EARS,
    EYES,
    FACE_OUTLINE,
    LIP_MIDDLE,
    LOWER_INNER,
    LOWER_LIP_ROWS,
    MOUTH_CORNERS,
    NEUTRAL,
    NOSE_BASE,
    NOSE_TIP,
    OUTER_MOUTH_CORNERS,
    POINTS,
    UNIT_OFFSETS,
    UNITS,
    UPPER_INNER,
    UPPER_LIP_ROWS,
    Eye,
    indicator,
    scatter,
)  # fmt: skip
from .fields import inverse_transpose, moving_least_squares
from .lid_curves import LOWER_LID_SHARE
from .mouth_units import mouth_units, undone_smile
from .regions import Frame, polyline
from .writer import Graph, Value

WIDE_SHARE = 0.5
"""Of the measured eyeWide, which is that of a fright."""

LIDS_MEET = [0.34, *[LOWER_LID_SHARE] * 5, 0.34]
"""Part of the way that each point of the lower lid makes in a blink: next to the corners lids meet at their height."""

FOLD_SHARE = 0.15
"""How far the fold above the lid follows the lid."""

LOWER_LIP_SHARE = 0.8
"""Part of the way that the lower lip makes when an open mouth is closed."""

SMILE = [UNITS.index("mouthSmileLeft"), UNITS.index("mouthSmileRight")]

SMILED_ALREADY = 0.5
"""Part of mouthSmile that a portrait which shows all of it has behind it: its corners cannot go as far again."""

CONTRADICT_SMILE = {"jawOpen": 0.3, "mouthFunnel": 0.5, "mouthPucker": 0.75}
"""Units that undo a smile, and the share of it for a coefficient of 1."""

POLAR_STEPS = 10
"""Newton steps to the nearest rotation; 7 reach float accuracy from singular values of 0.1."""

_LID_PROFILE = np.array([0.3, 0.7, 0.95, 1, 0.95, 0.7, 0.3], np.float32)


def flatten_depth(g: Graph, landmarks: Value) -> Value:
    """Landmarks [478, 3] with the depth behind the face bounded: ears are guessed too far back."""
    z = landmarks[:, 2:3]
    outline_x = landmarks.take(FACE_OUTLINE)[:, 0]
    reach = (outline_x.max(0) - outline_x.min(0)) * 0.25
    middle = z.mean(0, keep=True)
    behind = (z - middle).clip(0, None)
    bounded = middle - (middle - z).clip(0, None) + reach * g.op("Tanh", behind / reach)
    return g.concat([landmarks[:, 0:2], bounded], axis=1)


def neck_pivot(points: Value, g: Graph) -> Value:
    """[1, 3] the point about which the head turns: below the middle of the face, behind the ears."""
    outline = points.take(FACE_OUTLINE)
    centre = outline.mean(0)
    width = outline[:, 0].max(0) - outline[:, 0].min(0)
    y = points[CHIN, 1] * 0.55 + centre[1] * 0.45
    z = points.take(EARS)[:, 2].mean(0) + width * 0.15
    return g.concat([v.reshape(1, 1) for v in (centre[0], y, z)], axis=1)


def fit_similarity(g: Graph, points: Value) -> tuple[Value, Value]:
    """Rotation [3, 3] and scale [1, 1] that take the average head's upper face to `points` (rows @ rotation)."""
    upper_face = np.flatnonzero(NEUTRAL[:468, 1] < NEUTRAL[NOSE_TIP, 1] + 0.05).tolist()
    model = NEUTRAL[upper_face].astype(np.float64)
    model = (model - model.mean(0)).astype(np.float32)
    seen = points.take(upper_face)
    correlation = g.constant(np.ascontiguousarray(model.T)) @ (seen - seen.mean(0, keep=True))
    rotation = correlation / (correlation * correlation).sum(0, 1, keep=True).sqrt()
    for _ in range(POLAR_STEPS):
        rotation = (rotation + inverse_transpose(rotation)) * 0.5
    scale = (rotation * correlation).sum(0, 1, keep=True) / math.fsum((model.astype(np.float64) ** 2).ravel())
    return rotation, scale


def blink_unit(g: Graph, kp: Value, eye: Eye) -> Value:
    """[478, 3] the displacement that just closes this eye: its edges meet near the lower lid.

    Every point moves square to the line between the eye's corners, towards the other edge.
    """
    left, right = kp[eye.corners[0]], kp[eye.corners[1]]
    frame = Frame(left, right, (left + right) * 0.5)
    upper, lower = (frame.local_points(kp.take(edge)) for edge in (eye.upper_edge, eye.lower_edge))
    count = len(eye.upper_edge)

    def to(edge: tuple[Value, Value], u: Value, v: Value) -> Value:
        return (polyline(g, *edge, count, u, 1e-3) - v)[1:-1].unsqueeze(1)

    down = g.concat([-frame.sin.reshape(1, 1), frame.cos.reshape(1, 1), np.zeros((1, 1))], axis=1)
    falls, rises = to(lower, *upper), to(upper, *lower)
    follow = scatter([
        {point: 1 - meet, fold: FOLD_SHARE}
        for point, fold, meet in zip(eye.upper, eye.upper_fold, LIDS_MEET, strict=True)
    ])  # fmt: skip
    meet = scatter([{point: meet} for point, meet in zip(eye.lower, LIDS_MEET, strict=True)])
    return (follow @ falls + meet @ rises) * down


def openness(kp: Value, eye: Eye) -> Value:
    """0 for a closed eye, which must not be torn open, 1 from a height of 0.35 of its width on."""
    across = kp[eye.corners[1]] - kp[eye.corners[0]]
    high = kp[eye.lower[3]] - kp[eye.upper[3]]
    return ((high * high).sum(0) / (across * across).sum(0) * 8).clip(0, 1)


def gaze_units(g: Graph, kp: Value, eye: Eye) -> dict[str, Value]:
    """[478, 3] displacements for gaze to the left and right of the picture, up and down.

    Sideways the iris moves by 0.18 of the eye's width (about 30 degrees), less where it would pass
    behind a corner; lids follow a gaze up or down, the upper more than the lower.
    """
    corners, iris = kp.take(eye.corners), kp.take(eye.iris)
    axis = (corners[1] - corners[0])[0:2]
    width = (axis * axis).sum(0).sqrt()
    axis = axis / width
    across = g.concat([axis, [0]], axis=0).reshape(1, 3)
    down = g.concat([-axis[1:2], axis[0:1], [0]], axis=0).reshape(1, 3)
    rim = (iris[1:5] - iris[0:1])[:, 0:2]
    radius = (rim * rim).sum(1).sqrt().mean(0)
    from_left = ((iris[0] - corners[0])[0:2] * axis).sum(0)

    irises = g.constant(indicator(eye.iris)[:, None])
    upper = scatter([{p: float(w) for p, w in zip(eye.upper, _LID_PROFILE, strict=True)}])
    upper += 0.5 * scatter([{p: float(w) for p, w in zip(eye.upper_fold, _LID_PROFILE, strict=True)}])
    lower = scatter([{p: float(w) for p, w in zip(eye.lower, _LID_PROFILE, strict=True)}])
    up_lids, down_lids = 0.55 * upper + 0.2 * lower, 0.8 * upper + 0.3 * lower

    def sideways(room: Value) -> Value:
        return g.minimum(width * 0.18, (room - radius).clip(0, None) * 0.75)

    return {
        "image_left": irises @ across * -sideways(from_left),
        "image_right": irises @ across * sideways(width - from_left),
        "up": (irises + up_lids) @ down * (width * -0.10),
        "down": (irises + down_lids) @ down * (width * 0.14),
    }


def own_smile(g: Graph, kp: Value) -> Value:
    """[1] how much of mouthSmile (both sides) the portrait itself shows, by the width and the lift of its corners.

    Only what both agree on (their harmonic mean) is a smile: some mouths are wide, some turn up, at rest.
    """
    left, right = OUTER_MOUTH_CORNERS

    def read(points: Value) -> tuple[Value, Value]:
        upper, lower = points[UPPER_INNER[LIP_MIDDLE], 1], points[LOWER_INNER[LIP_MIDDLE], 1]
        line = upper * LOWER_LIP_SHARE + lower * (1 - LOWER_LIP_SHARE)
        return points[right, 0] - points[left, 0], line - (points[left, 1] + points[right, 1]) * 0.5

    neutral, smile = g.constant(NEUTRAL), UNIT_OFFSETS[SMILE].sum(0)
    (width, lift), (wider, higher) = read(neutral), read(g.constant(smile))
    own_width, own_lift = read(kp)
    by_width, by_lift = ((own_width - width) / wider).clip(0, 1.2), ((own_lift - lift) / higher).clip(0, 1.2)
    return (by_width * by_lift * 2 / (by_width + by_lift + 0.05)).clip(0, 1).reshape(1)


def own_units(g: Graph, kp: Value) -> Value:
    """[52, 478, 3] the measured units, mouth units in proportion to this mouth, lids and gaze fitted.

    Units of the mouth that contradict a smile take the share of the portrait's own smile with them.
    """
    smile = own_smile(g, kp)
    left, right = OUTER_MOUTH_CORNERS
    across = NEUTRAL[right, 0] - NEUTRAL[left, 0]
    smiled = float(UNIT_OFFSETS[SMILE].sum(0)[right, 0] - UNIT_OFFSETS[SMILE].sum(0)[left, 0])
    mouth = ((kp[right, 0] - kp[left, 0] - smile * smiled) / float(across)).clip(0.8, 1.4)

    fitted: dict[str, Value] = {}
    sides = (("Right", "image_right", "image_left"), ("Left", "image_left", "image_right"))
    for eye, (side, inwards, outwards) in zip(EYES, sides, strict=True):
        fitted[f"eyeBlink{side}"] = blink_unit(g, kp, eye)
        wide = f"eyeWide{side}"
        fitted[wide] = openness(kp, eye) * (UNIT_OFFSETS[UNITS.index(wide)] * WIDE_SHARE)
        gaze = gaze_units(g, kp, eye)
        fitted[f"eyeLookIn{side}"], fitted[f"eyeLookOut{side}"] = gaze[inwards], gaze[outwards]
        fitted[f"eyeLookUp{side}"], fitted[f"eyeLookDown{side}"] = gaze["up"], gaze["down"]

    rows, measured_units, smile_unit = [], mouth_units(), g.constant(undone_smile())
    for index, name in enumerate(UNITS):
        if name in fitted:
            rows.append(fitted[name])
        else:
            measured = g.constant(measured_units[index])
            if name.startswith("mouthSmile"):
                measured = measured * (1 - smile * SMILED_ALREADY)
            if name in CONTRADICT_SMILE:
                measured = measured - smile_unit * (smile * CONTRADICT_SMILE[name])
            rows.append(measured if name.startswith(("eye", "brow")) else measured * mouth)
    return g.concat([row.unsqueeze(0) for row in rows], axis=0)


def closing_offset(g: Graph, kp: Value, jaw_open: Value) -> Value:
    """[478, 3] the offset that closes the mouth: inner lips meet, lips and chin follow, the rest stays.

    Lips that part a little are closed by themselves (teeth shown in a smile: the jaw is closed already);
    a mouth wide open first by undoing `jaw_open` [478, 3].
    """
    apart = kp.take(LOWER_INNER) - kp.take(UPPER_INNER)
    corners = kp.take(MOUTH_CORNERS)
    height = apart[LIP_MIDDLE, 1]
    by_jaw = g.smoothstep((height / (corners[1] - corners[0])[0].clip(0.1, None) - 0.12) / 0.3)
    drop = jaw_open[LOWER_INNER[LIP_MIDDLE], 1].clip(0.05, None)
    jaw = jaw_open * (by_jaw * (height * -LOWER_LIP_SHARE) / drop)
    gap = apart + jaw.take(LOWER_INNER) - jaw.take(UPPER_INNER)
    middle_gap = gap[LIP_MIDDLE : LIP_MIDDLE + 1]
    still = [*FACE_OUTLINE[:14], *FACE_OUTLINE[23:], NOSE_TIP, NOSE_BASE, 98, 327, *CHEEKS[:2],
             *OUTER_MOUTH_CORNERS, *MOUTH_CORNERS, 33, 263, 159, 386]  # fmt: skip
    followers = {CHIN: -0.25, LOWER_LIP_ROWS[2][LIP_MIDDLE]: -0.62, UPPER_LIP_ROWS[2][LIP_MIDDLE]: 0.28}
    nodes = kp.take([*UPPER_INNER, *LOWER_INNER, *followers, *still])[:, 0:2]
    upper, lower = gap * (1 - LOWER_LIP_SHARE), gap * -LOWER_LIP_SHARE
    follow = middle_gap * np.array([[share] for share in followers.values()], np.float32)
    values = g.concat([upper, lower, follow, np.zeros((len(still), 3), np.float32)], axis=0)
    everywhere = g.constant(np.ones(18 + len(followers) + len(still), np.float32))
    soft = moving_least_squares(g, kp[:, 0:2], POINTS, nodes, [values], [everywhere], softening=0.02, ridge=1e-4)[0]

    inner = indicator([*UPPER_INNER, *LOWER_INNER])[:, None]
    below_nose = (NEUTRAL[:, 1] > NEUTRAL[NOSE_TIP, 1]).astype(np.float32)[:, None]
    at_edges = scatter([{p: 1.0} for p in UPPER_INNER]) @ upper + scatter([{p: 1.0} for p in LOWER_INNER]) @ lower
    return jaw + soft * (below_nose * (1 - inner)) + at_edges


def portrait_graph() -> Graph:
    """`landmarks` [1, 478, 3] in crop units -> kp, rotation, scale, t, exp, basis, closed_mouth.

    scale * (kp @ rotation + exp) + t gives the landmarks back (z bounded, relative to the pivot).
    `basis` and `closed_mouth` are offsets in the frame of kp, before the rotation.
    """
    g = Graph("portrait")
    landmarks = g.input("landmarks", [1, POINTS, 3])
    points = flatten_depth(g, landmarks[0])
    rotation, scale = fit_similarity(g, points)
    pivot = neck_pivot(points, g)
    kp = (points - pivot) @ rotation.transpose(1, 0) / scale
    g.output("kp", kp.unsqueeze(0), [1, POINTS, 3])
    g.output("rotation", rotation.unsqueeze(0), [1, 3, 3])
    g.output("scale", scale, [1, 1])
    g.output("t", pivot * [1, 1, 0], [1, 3])
    g.output("exp", (kp * 0).unsqueeze(0), [1, POINTS, 3])
    units = own_units(g, kp)
    g.output("basis", units.unsqueeze(0), [1, len(UNITS), POINTS, 3])
    closed = closing_offset(g, kp, g.constant(mouth_units()[UNITS.index("jawOpen")]))
    g.output("closed_mouth", closed.unsqueeze(0), [1, POINTS, 3])
    return g
