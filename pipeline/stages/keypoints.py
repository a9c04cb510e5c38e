"""Stage 5: motion becomes driving keypoints (LivePortrait's relative motion)."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from ..packs.specs import DrivingSpec
from ..pose import rotation_matrix
from ..runtime.session import Model
from ..values import F32, Motion, Source


def at_film_frames(motion: Motion, fps: Fraction, count: int) -> Motion:
    """The motion at the middle of every film frame, linear between motion frames.

    Motion frame j describes the sound from j to j + 1 frame lengths, so its own time is the middle of
    that; a film at the motion's rate gets the rows as they are.

    Args:
        fps: the film's frame rate. count: film frames N.

    Returns:
        Motion with N rows and the film's rate.
    """
    position = (np.arange(count) + 0.5) * (motion.fps / float(fps)) - 0.5
    position = np.clip(position, 0, len(motion) - 1)
    low = np.floor(position).astype(np.int64)
    high = np.minimum(low + 1, len(motion) - 1)
    part = (position - low).astype(np.float32)

    def mixed(rows: F32) -> F32:
        weight = part.reshape(-1, *[1] * (rows.ndim - 1))
        return rows[low] * (1 - weight) + rows[high] * weight

    return Motion(
        expression=mixed(motion.expression),
        scale=mixed(motion.scale),
        translation=mixed(motion.translation),
        angles=mixed(motion.angles),
        fps=float(fps),
    )


def expression_offsets(source: Source, motion: Motion, frame: int) -> F32:
    """Expression of one frame as canonical keypoint offsets: [K, 3].

    One frame at a time and not through BLAS, whose last bit may depend on rows and threads.
    """
    row = motion.expression[frame]
    if source.basis is None:
        return row.reshape(-1, 3)
    return np.einsum("e,ekc->kc", row, source.basis)


def driving_keypoints(
    source: Source,
    motion: Motion,
    frame: int,
    spec: DrivingSpec,
    *,
    strength: float = 1.0,
    stitching: Model | None = None,
) -> F32:
    """Driving keypoints of one film frame.

    R, exp, scale and t follow the spec's rules, x_d = scale * (kp @ R + exp) + t with t_z = 0, the mouth
    closed by `source.closed_mouth` at rest; then stitching and `source.lip_closing`; then
    x_d = rest + (x_d - rest) * strength, where rest is the source with its mouth closed: strength is of the
    motion, and closes no mouth further.

    Args:
        motion: rows at film frames; row 0 is what "relative" parts are relative to.
        strength: 0 to 2; 0 is the portrait at rest, 1 the motion as it is.
        stitching: takes `keypoints` [1, 6 K] (source, driving) and gives `delta` [1, 3 K + 2].

    Returns:
        [K, 3] float32, in the keypoints' own units (x and y about -1..1 across the crop).
    """
    exp = _expression(source, motion, frame, spec)
    rotation = _rotation(source, motion, frame, spec)
    scale = _ruled(spec.scale, source.scale, motion.scale[frame], motion.scale[frame] / motion.scale[0], product=True)
    translation = _ruled(
        spec.translation,
        source.translation,
        motion.translation[frame],
        motion.translation[frame] - motion.translation[0],
    )
    driving = _place(source, spec, rotation, exp, scale, translation)
    if stitching is not None:
        driving = stitch(source.keypoints, driving, stitching)
    if source.lip_closing is not None:
        driving = driving + source.lip_closing
    if strength != 1.0:
        rest = _at_rest(source, spec)
        driving = rest + (driving - rest) * np.float32(strength)
    return np.ascontiguousarray(driving, np.float32)


def _at_rest(source: Source, spec: DrivingSpec) -> F32:
    """The source's keypoints [K, 3] with its mouth closed, where the pack can close it."""
    rest = source.keypoints
    if source.closed_mouth is not None:
        still = source.expression + source.closed_mouth
        rest = _place(source, spec, source.rotation, still, source.scale, source.translation)
    return rest if source.lip_closing is None else rest + source.lip_closing


def stitch(keypoints: F32, driving: F32, model: Model) -> F32:
    """Add the stitching network's keypoint deltas and its shift of x and y to the driving keypoints [K, 3]."""
    flat = np.concatenate([keypoints.reshape(1, -1), driving.reshape(1, -1)], 1)
    delta = np.asarray(model.run({"keypoints": flat})["delta"], np.float32).reshape(-1)
    stitched = driving + delta[:-2].reshape(driving.shape)
    stitched[:, :2] += delta[-2:]
    return stitched.astype(np.float32)


def _ruled(rule: str, own: F32 | float, value: F32, change: F32, *, product: bool = False) -> F32:
    """Combine the source's own value with the frame's, by rule."""
    if rule == "absolute":
        return value
    step = change if rule == "relative" else value
    return np.asarray(own * step if product else own + step, np.float32)


def _rotation(source: Source, motion: Motion, frame: int, spec: DrivingSpec) -> F32:
    turn = rotation_matrix(motion.angles[frame])
    if spec.rotation == "absolute":
        return turn
    if spec.rotation == "relative":
        turn = turn @ rotation_matrix(motion.angles[0]).T
    return turn @ source.rotation


def _expression(source: Source, motion: Motion, frame: int, spec: DrivingSpec) -> F32:
    value = expression_offsets(source, motion, frame)
    first = expression_offsets(source, motion, 0) if "relative" in (spec.expression, spec.lip_rule) else value
    exp = _ruled(spec.expression, source.expression, value, value - first).copy()
    if spec.lip_rule != spec.expression:
        lips = list(spec.lip_points)
        exp[lips] = _ruled(spec.lip_rule, source.expression, value, value - first)[lips]
    if source.closed_mouth is not None:
        exp = exp + source.closed_mouth
    return exp


def _place(source: Source, spec: DrivingSpec, rotation: F32, exp: F32, scale: F32 | float, translation: F32) -> F32:
    if spec.expression_frame == "head":
        turned: F32 = np.asarray((source.kp + exp) @ rotation, np.float32)
    else:
        turned = np.asarray(source.kp @ rotation + exp, np.float32)
    points: F32 = np.asarray(scale * turned, np.float32)
    points[:, :2] += translation[:2]
    return points
